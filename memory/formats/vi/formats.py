DATE_FORMAT = r"j \t\h\á\n\g n, Y"
SHORT_DATE_FORMAT = "d/m/Y"
MONTH_DAY_FORMAT = r"j \t\h\á\n\g n"
DATETIME_FORMAT = r"H:i, j \t\h\á\n\g n, Y"
SHORT_DATETIME_FORMAT = "H:i, d/m/Y"
NUMBER_GROUPING = 3
THOUSAND_SEPARATOR = "."
