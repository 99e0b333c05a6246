DATE_FORMAT = "j F Y"
SHORT_DATE_FORMAT = "j N Y"
MONTH_DAY_FORMAT = "j F"
DATETIME_FORMAT = "j F Y à H:i"
SHORT_DATETIME_FORMAT = "j N Y à H:i"
# A space that does not break, and is thinner: 5 463.
THOUSAND_SEPARATOR = "\u202f"
