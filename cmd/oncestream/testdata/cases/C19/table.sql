create table "Order" (id int primary key, "randomText" text, "select" int, "user" text, "a b" boolean, "x""y" text);
