copy "shop"."Order" ("id", "kind", "x""y", "total") from stdin (format binary);
