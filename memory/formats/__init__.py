"""How dates read, by language: Django's own formats, but for those that our pages have shorter."""
