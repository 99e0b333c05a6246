"""Word lists of the guard: English, Vietnamese, Portuguese, French, Spanish, German."""

from typing import Final

_STOP: Final = """
a an the of to in at for with by from is are was were be been do does did can could would should will shall may i
me my we our you your it its this that these those there here please tell show give us what which who how when where
why and or as if any some s re ve ll d m about get got have has had am just want need like know let into than then
so also really exactly way ways best make use using
o os as um uma de da dos das em no na para por com como que qual quais onde quando é são eu meu minha posso pode
le la les un une des du de l j le mon ma mes est sont qu quel quelle comment où quand pour dans avec par puis
el los las una unos del y es son yo mi mis cómo qué cuál dónde cuándo con puedo en
der die das ein eine einen den dem ich mein meine ist sind wie was wo wann für mit von und kann man im zu zum
cách làm sao như nào thế thì là của cho tôi mình có được ở gì ai khi
"""
STOP_WORDS: Final = frozenset(_STOP.split())
_NO: Final = """
not no never without none neither nor cannot cant dont doesnt didnt isnt arent wasnt wont wouldnt shouldnt couldnt
non nothing nobody except unless exclude excluding excluded avoid stop prevent forbid forbidden banned lacks lack
lacking fail fails failed
không chưa đừng chẳng chớ khỏi
não nunca sem jamais nem nenhum nenhuma exceto
pas sans aucun aucune rien sauf
sin jamás ni tampoco ningún ninguna excepto
nicht kein keine keinen keiner nie niemals ohne außer weder
"""
NEGATIONS: Final = frozenset(_NO.split())
_PAIRS: Final = """
enable disable|on off|open closed|open close|opened closed|start stop|add remove|add delete|create delete|allow deny
allow block|allowed banned|allowed forbidden|before after|increase decrease|raise lower|install uninstall
include exclude
up down|first last|min max|last next|previous next|cheapest expensive|minimum maximum|highest lowest|most least
more less|more fewer|oldest newest
latest earliest
with without|pass fail|passed failed|passes fails|import export|read write|upload download|send receive
sent received
buy sell|encrypt decrypt|encode decode|lock unlock|subscribe unsubscribe|safe unsafe|legal illegal|push pull
accept reject
approve reject|client server|source target|input output|true false|left right|inside outside|above below|over under
win lose|gain lose|eat avoid|best worst|advantages disadvantages|pros cons|private public|internal external
arrive depart|arrival departure|cause cure|single married|weekday weekend|weekdays weekends|morning evening
daily weekly
monthly yearly|monthly annual|enabled disabled|connect disconnect|attach detach|mount unmount|show hide
visible hidden
expand collapse|merge split|upgrade downgrade|commit revert|success failure|succeed fail|can't can|member guest
join leave
log-in log-out|login logout|signin signout|acquire release|grant revoke|register unregister|activate deactivate
sync async|synchronous asynchronous|serial parallel|ascending descending|asc desc|cheap expensive|cheapest dearest
fast slow|faster slower|early late|earlier later|old new|older newer|hot cold|hotter colder|full empty
full-time part-time
always never|everyone nobody|all none|required optional|manual automatic|manually automatically|positive negative
incoming outgoing|inbound outbound|parent child|adult child|adults children|men women|male female|indoor outdoor
bật tắt|mở đóng|thêm xóa|thêm xoá|tăng giảm|trước sau|cho cấm|nhập xuất|khóa mở|đúng sai|trong ngoài|gửi nhận|cài gỡ
lên xuống
có không|khởi dừng|đọc ghi|công riêng|mới cũ|nhanh chậm|đầu cuối|trên dưới
ativo desativo|ativa desativa|com sem|último próximo|última próxima
ativar desativar|habilitar desabilitar|ligar desligar|abrir fechar|aberto fechado|aberta fechada|adicionar remover
permitir bloquear|permitir negar|antes depois|aumentar diminuir|instalar desinstalar|incluir excluir
importar exportar
ler escrever|enviar receber|iniciar parar|aceitar rejeitar|entrada saída|interno externo|público privado|maior menor
primeiro último|mais menos|dentro fora|bloquear desbloquear|conectar desconectar|criar apagar|criar excluir
novo antigo
active désactive|avec sans|augmenter réduire|dernier prochain|dernière prochaine
activer désactiver|ouvrir fermer|ouvert fermé|ouverte fermée|ajouter supprimer|ajouter retirer|autoriser interdire
autoriser bloquer|avant après|augmenter diminuer|installer désinstaller|inclure exclure|importer exporter
lire écrire
envoyer recevoir|démarrer arrêter|accepter refuser|entrée sortie|interne externe|public privé|premier dernier
plus moins
dedans dehors|verrouiller déverrouiller|connecter déconnecter|créer supprimer|nouveau ancien|allumer éteindre
activo desactivo|activa desactiva|con sin|último próximo|última próxima
activar desactivar|habilitar deshabilitar|encender apagar|abrir cerrar|abierto cerrado|añadir quitar
agregar eliminar
permitir denegar|antes después|aumentar disminuir|instalar desinstalar|incluir excluir|leer escribir|enviar recibir
iniciar detener|aceptar rechazar|entrada salida|primero último|más menos|crear eliminar|nuevo viejo
aktivieren deaktivieren|einschalten ausschalten|öffnen schließen|offen geschlossen|hinzufügen entfernen
erlauben verbieten
vor nach|erhöhen senken|installieren deinstallieren|importieren exportieren|lesen schreiben|senden empfangen
starten stoppen|annehmen ablehnen|eingang ausgang|intern extern|öffentlich privat|erste letzte|mehr weniger|ein aus
aktiviere deaktiviere|aktiviert deaktiviert|letzte nächste|letzten nächsten|billigste teuerste|mit ohne
sperren entsperren|verbinden trennen|erstellen löschen|neu alt
in out|this last|this next|this previous|same different|same other|only except|only all|all but|since until
until after|until from|up from|inner outer|north south|east west|largest smallest|biggest smallest|bigger smaller
larger smaller|greater less|longer shorter|longest shortest|dry real|unit integration|front back|head tail|begin end
prepend append|ascend descend|horizontal vertical|mother father|mothers fathers|husband wife|son daughter
brother sister|king queen|he she|his her|day night|do undo|done undone|master slave|leader follower|primary replica
primary secondary|producer consumer|sender receiver|caller callee|debit credit|import require|major minor|hard soft
odd even|wet dry|static dynamic|local global|local remote|absolute relative|explicit implicit|plus minus
включить выключить|включен выключен|включён выключен|открыть закрыть|добавить удалить|разрешить запретить|до после
"""
_SPLIT: Final = [tuple(pair.split()) for line in _PAIRS.strip().splitlines() for pair in line.split("|")]
ANTONYMS: Final = frozenset({(one, other) for one, other in _SPLIT} | {(other, one) for one, other in _SPLIT})
# Of these one is never another, and no capital tells them.
_GROUPS: Final = """
dev development|staging stage preview|test testing qa|prod production live|local localhost|canary
linux ubuntu debian|windows|macos mac osx|android|ios iphone
python|ruby|golang go|rust|java|javascript js|typescript ts|kotlin|swift|php|scala
eu europe european emea|us usa america american|uk britain british|apac asia asian|africa african|china chinese|japan
postgres postgresql|mysql|mariadb|sqlite|redis|mongodb mongo|memcached|kafka|rabbitmq|elasticsearch
github|gitlab|bitbucket|jenkins|circleci
npm|yarn|pnpm|pip|poetry|uv|cargo|maven|gradle
get|post|put|patch|delete
debug|info|warning warn|error|trace
staff|students student|guests guest|members member|employees employee|customers customer|contractors contractor
kids children child|adults adult|seniors senior pensioners
breakfast|lunch|dinner|brunch
"""
GROUPS: Final = {
    word: (group, kind)
    for group, line in enumerate(_GROUPS.strip().splitlines())
    for kind, words in enumerate(line.split("|"))
    for word in words.split()
}
# What makes a word its opposite, or another act.
_PREFIX: Final = """
un in im il ir dis de des dés non re anti mis over under pre post multi single inter intra up down auto sub super co ex
self semi half ent ver be dé ré sur sous bất vô phi
"""
PREFIXES: Final = frozenset(_PREFIX.split())
# Units, the spellings of one together: other units are other amounts.
_UNITS: Final = """
ns nanosecond nanoseconds|us µs μs microsecond microseconds|ms msec millisecond milliseconds|s sec secs second seconds
min mins minute minutes|h hr hrs hour hours hourly|d day days daily|wk week weeks weekly|mo month months monthly
yr yrs year years yearly annual annually|b byte bytes|kb kilobyte kilobytes|mb megabyte megabytes|gb gigabyte gigabytes
tb terabyte terabytes|kib|mib|gib|tib|bit bits|kbit kbps|mbit mbps|gbit gbps|hz|khz|mhz|ghz|mm|cm|m meter meters metre
km kilometer kilometers kilometre kilometres|inch inches|ft foot feet|yd yard yards|mi mile miles|mg|g gram grams
kg kilo kilos kilogram kilograms|lb lbs pound pounds|oz ounce ounces|t ton tons tonne tonnes|ml|l liter liters litre
gal gallon gallons|c °c celsius centigrade|f °f fahrenheit|k kelvin|usd dollar dollars|eur euro euros|gbp sterling
jpy yen|vnd đồng dong|brl reais real|cny rmb yuan|inr rupee rupees|btc bitcoin|w watt watts|kw|mw|v volt volts
a amp amps|px pixel pixels|em rem|pt|% percent percentage pct|rpm|rps|qps|giây|phút|giờ|ngày|tuần|tháng|năm
segundo segundos|minuto minutos|hora horas|dia dias día días|semana semanas|mês mes meses|ano anos año años
seconde secondes|heure heures|jour jours|semaine semaines|mois|sekunde sekunden|stunde stunden|tag tage
woche wochen|monat monate|jahr jahre|meters metres|litres liters
"""
_KINDS: Final = [kind.split() for line in _UNITS.strip().splitlines() for kind in line.split("|")]
UNITS: Final = {word: kind[0] for kind in reversed(_KINDS) for word in kind}
# Words that are something else as well: units behind a number only.
_SHORT: Final = "us min mins sec second mi mo mes em rem bit bits pt tag tage gal amp a m s h d c f k"
SHORT_UNITS: Final = frozenset(_SHORT.split())
# Of these groups one does not come after the other, as one package manager may: each stays what it is.
_LASTING: Final = {GROUPS[word][0] for word in ("dev", "linux", "android", "eu")}
PLACES: Final = frozenset(word for word, (group, _) in GROUPS.items() if group in _LASTING)
# What people say to be kind. It asks nothing.
PLEASANTRIES: Final = (
    "hi", "hello", "hey", "hi there", "good morning", "please", "thanks", "thank you", "thanks a lot", "cheers",
    "many thanks", "thanks in advance", "quick question", "xin chào", "cảm ơn", "olá", "obrigado", "obrigada",
    "por favor", "bonjour", "merci", "s'il vous plaît", "hola", "gracias", "hallo", "danke", "bitte",
)  # fmt: skip
# Between these words the order says who does what to whom.
_BETWEEN: Final = "to into from than over before after versus vs em para de vers nach thành sang"
DIRECTIONS: Final = frozenset(_BETWEEN.split())
NUMBER_WORDS: Final = {
    word: str(value)
    for words in (
        "zero _ two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
        "zéro _ deux trois quatre cinq six sept huit neuf dix onze douze",
        "_ _ dois três quatro cinco seis sete oito nove dez onze doze",
        "cero _ dos tres cuatro cinco seis siete ocho nueve diez once doce",
        "null _ zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "_ _ hai ba bốn năm sáu bảy tám chín mười",
    )
    for value, word in enumerate(words.split())
    if word != "_"
}
ORDINALS: Final = {
    word: f"#{value + 1}"
    for words in ("_ second third fourth fifth sixth", "_ deuxième troisième", "_ segundo terceiro", "_ zweite dritte")
    for value, word in enumerate(words.split())
    if word != "_"
}
_MONTHS: Final = """january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sep sept
october oct|november nov|december dec|monday mon|tuesday tue|wednesday wed|thursday thu|friday fri
saturday sat|sunday sun
today|tomorrow|yesterday|tonight|spring|summer|autumn fall|winter|christmas|easter
hôm|mai|ontem|amanhã|hoje|hier|demain|aujourd'hui|ayer|mañana|hoy|gestern|heute|morgen
segunda|terça|quarta|quinta|sexta|sábado|domingo|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche
janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro
janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre
enero|febrero|marzo|mayo|junio|julio|septiembre|octubre|noviembre|diciembre
januar|februar|märz|juni|juli|oktober|dezember
lunes|martes|miércoles|jueves|viernes|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag"""
DATES: Final = {
    word: kind.split()[0] for line in _MONTHS.splitlines() for kind in line.split("|") for word in kind.split()
}
