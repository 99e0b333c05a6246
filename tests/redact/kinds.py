"""Made-up secrets of many kinds, put together at run time so that no file holds anything that looks like one."""

import random
import string

LOWER_HEX, UPPER, LOWER = "0123456789abcdef", string.ascii_uppercase, string.ascii_lowercase
BASE62 = string.ascii_letters + string.digits
BASE64 = BASE62 + "+/"
URLSAFE = BASE62 + "-_"
BASE32 = UPPER + "234567"

# name: (text before, parts of the secret, text after). A part is literal text or (alphabet, length).
Part = str | tuple[str, int]
KINDS: dict[str, tuple[str, list[Part], str]] = {
    "team memory": ("key: ", ["tm_", "live_", (BASE62, 46)], ""),
    "github pat": ("token ", ["gh", "p_", (BASE62, 36)], ""),
    "github oauth": ("", ["gh", "o_", (BASE62, 36)], ""),
    "github user": ("", ["gh", "u_", (BASE62, 36)], ""),
    "github server": ("", ["gh", "s_", (BASE62, 36)], ""),
    "github refresh": ("", ["gh", "r_", (BASE62, 36)], ""),
    "github fine grained": ("", ["github_", "pat_", (BASE62, 22), "_", (BASE62, 59)], ""),
    "gitlab": ("", ["gl", "pat-", (BASE62, 20)], ""),
    "gitlab runner": ("", ["gl", "rt-", (BASE62, 20)], ""),
    "slack bot": ("", ["xo", "xb-", ("0123456789", 12), "-", ("0123456789", 12), "-", (BASE62, 24)], ""),
    "slack app": ("", ["xa", "pp-1-A", (UPPER, 10), "-", ("0123456789", 13), "-", (LOWER_HEX, 64)], ""),
    "stripe live": ("", ["sk", "_live_", (BASE62, 24)], ""),
    "stripe restricted": ("", ["rk", "_live_", (BASE62, 24)], ""),
    "webhook secret": ("", ["wh", "sec_", (BASE62, 32)], ""),
    "anthropic": ("", ["sk-", "ant-api03-", (URLSAFE, 93), "AA"], ""),
    "openai": ("", ["sk-", (BASE62, 20), "T3Blbk", "FJ", (BASE62, 20)], ""),
    "openai project": ("", ["sk-", "proj-", (BASE62, 48)], ""),
    "openrouter": ("", ["sk-", "or-v1-", (LOWER_HEX, 64)], ""),
    "aws key id": ("", ["AK", "IA", (BASE32, 16)], ""),
    "aws session id": ("", ["AS", "IA", (BASE32, 16)], ""),
    "aws secret": ("aws_secret_access_key = ", [(BASE62, 20), "/", (BASE62, 19)], ""),
    "google api": ("", ["AI", "za", (URLSAFE, 35)], ""),
    "google oauth secret": ("", ["GOC", "SPX-", (BASE62, 28)], ""),
    "google access": ("", ["ya", "29.", (URLSAFE, 60)], ""),
    "npm": ("", ["np", "m_", (BASE62, 36)], ""),
    "pypi": ("", ["py", "pi-AgEIcHlwaS5vcmc", (BASE62, 60)], ""),
    "hugging face": ("", ["h", "f_", (string.ascii_letters, 34)], ""),
    "digitalocean": ("", ["do", "p_v1_", (LOWER_HEX, 64)], ""),
    "sendgrid": ("", ["S", "G.", (BASE62, 22), ".", (BASE62, 43)], ""),
    "brevo": ("", ["xkey", "sib-", (LOWER_HEX, 64), "-", (BASE62, 16)], ""),
    "mailgun": ("", ["ke", "y-", (LOWER_HEX, 32)], ""),
    "mailchimp": ("", [(LOWER_HEX, 32), "-us", "12"], ""),
    "shopify": ("", ["shp", "at_", (LOWER_HEX, 32)], ""),
    "square": ("", ["sq0", "atp-", (BASE62, 22)], ""),
    "databricks": ("", ["da", "pi", (LOWER_HEX, 32)], ""),
    "vault": ("", ["hv", "s.", (BASE62, 95)], ""),
    "age": ("", ["AGE-SECRET", "-KEY-1", ("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)], ""),
    "linear": ("", ["lin_", "api_", (BASE62, 40)], ""),
    "notion": ("", ["nt", "n_", (BASE62, 46)], ""),
    "figma": ("", ["fi", "gd_", (URLSAFE, 40)], ""),
    "grafana": ("", ["gl", "sa_", (BASE62, 32), "_", (LOWER_HEX, 8)], ""),
    "postman": ("", ["PM", "AK-", (LOWER_HEX, 24), "-", (LOWER_HEX, 34)], ""),
    "rubygems": ("", ["ruby", "gems_", (LOWER_HEX, 48)], ""),
    "netlify": ("", ["nf", "p_", (BASE62, 36)], ""),
    "sentry": ("", ["sn", "tryu_", (LOWER_HEX, 64)], ""),
    "tailscale": ("", ["ts", "key-auth-", (BASE62, 12), "-", (BASE62, 32)], ""),
    "docker": ("", ["dc", "kr_pat_", (BASE62, 27)], ""),
    "atlassian": ("", ["AT", "ATT3xFfGF0", (BASE62, 180)], ""),
    "airtable": ("", ["pa", "t", (BASE62, 14), ".", (LOWER_HEX, 64)], ""),
    "replicate": ("", ["r", "8_", (BASE62, 37)], ""),
    "groq": ("", ["gs", "k_", (BASE62, 52)], ""),
    "xai": ("", ["xa", "i-", (BASE62, 80)], ""),
    "nvidia": ("", ["nv", "api-", (BASE62, 64)], ""),
    "posthog": ("", ["ph", "x_", (BASE62, 43)], ""),
    "langsmith": ("", ["ls", "v2_pt_", (LOWER_HEX, 32), "_", (LOWER_HEX, 10)], ""),
    "pulumi": ("", ["pu", "l-", (LOWER_HEX, 40)], ""),
    "terraform": ("", [(BASE62, 14), ".atlas", "v1.", (BASE62, 67)], ""),
    "twilio": ("", ["S", "K", (LOWER_HEX, 32)], ""),
    "telegram": ("bot ", ["7", ("0123456789", 9), ":A", "A", (URLSAFE, 33)], ""),
    "discord": ("DISCORD_TOKEN=", ["M", (BASE62, 23), ".", (BASE62, 6), ".", (BASE62, 27)], ""),
    "jwt": ("", ["ey", "J", (BASE62, 33), ".ey", "J", (BASE62, 60), ".", (URLSAFE, 43)], ""),
    "supabase": ("", ["sb", "p_", (LOWER_HEX, 40)], ""),
    "planetscale": ("", ["pscale", "_tkn_", (BASE62, 43)], ""),
    "doppler": ("", ["dp", ".pt.", (BASE62, 43)], ""),
    "new relic": ("", ["NR", "AK-", (UPPER, 27)], ""),
    "bearer": ("Authorization: Bearer ", [(BASE62, 40)], ""),
    "basic": ("Authorization: Basic ", [(BASE62, 38), "7A=="], ""),
    "postgres url": ("postgres://app:", [(BASE62, 14)], "@db.internal/prod"),
    "redis url": ("redis://default:", [(BASE62, 20)], "@cache:6379/0"),
    "mongo url": ("mongodb+srv://svc:", [(BASE62, 18)], "@cluster0.example.net/x"),
    "env api key": ("export API_KEY=", [(BASE62, 32)], ""),
    "env secret": ("DJANGO_SECRET_KEY=", [(URLSAFE, 50)], ""),
    "json password": ('"password": "', [(BASE62, 12), "9!"], '"'),
    "yaml client secret": ("client_secret: ", [(BASE62, 31), "4"], ""),
    "code api key": ('apiKey = "', [(BASE62, 31), "4"], '"'),
    "azure storage": ("AccountName=acme;AccountKey=", [(BASE64, 86), "=="], ";EndpointSuffix=core.windows.net"),
    "slack webhook": ("https://hooks.slack.com/", ["services/T", (UPPER, 8), "/B", (UPPER, 8), "/", (BASE62, 24)], ""),
    "command line": ("deploy --token ", [(BASE62, 32)], " --force"),
    "curl user": ("curl -u admin:", [(BASE62, 16)], " https://api.example.com"),
    "sshpass": ("sshpass -p '", [(BASE62, 12)], "' ssh build@ci"),
    "mysql": ("mysql -u root -p", [(BASE62, 14)], " shop"),
    "netrc": ("machine git.example.com login ci password ", [(BASE62, 16)], ""),
    "cookie": ("Cookie: theme=dark; sessionid=", [(BASE62, 31), "4"], ""),
    "set-cookie": ("Set-Cookie: access_token=", [(BASE62, 39), "4"], "; Path=/; HttpOnly"),
    "htpasswd": ("bob:$apr1$", [(BASE62, 8), "$", (BASE62, 22)], ""),
    "bcrypt": ("bob:$2y$", ["10$", (BASE62, 53)], ""),
    "private key": (
        "",
        ["-----BEGIN RSA ", "PRIVATE KEY-----\n", (BASE64, 64), "\n-----END", " RSA PRIVATE KEY-----"],
        "",
    ),
}


def sample(kind: str, dice: random.Random) -> tuple[str, str, str]:
    """Text before, secret, text after."""
    before, parts, after = KINDS[kind]
    made = [part if isinstance(part, str) else "".join(dice.choices(part[0], k=part[1])) for part in parts]
    return before, "".join(made), after
