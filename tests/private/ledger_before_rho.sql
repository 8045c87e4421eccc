-- A ledger as dphist wrote it before totals could be in ρ or (ε, δ).
PRAGMA application_id = 1685089383;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE budgets (dataset TEXT PRIMARY KEY NOT NULL, total TEXT NOT NULL, spent TEXT NOT NULL);
INSERT INTO "budgets" VALUES('adults','3/2','1');
INSERT INTO "budgets" VALUES('children','2','1/10');
CREATE TABLE lines (
        number INTEGER PRIMARY KEY, kind TEXT NOT NULL, dataset TEXT NOT NULL, amount TEXT NOT NULL,
        purpose TEXT NOT NULL, unit TEXT NOT NULL, time TEXT NOT NULL, subject INTEGER NOT NULL,
        digest TEXT NOT NULL, hash TEXT NOT NULL UNIQUE);
INSERT INTO "lines" VALUES(1,'began','','','982cfd1e-c5fa-4e4f-96a8-f7f9a3f1bb93','','2026-11-15T20:21:03+00:00',0,'','d2c015fde352b1ce6a8fe41001b5d7b291732019ce351c6c6dd536e50fbb8989');
INSERT INTO "lines" VALUES(2,'created','adults','3/2','','{"id":null,"replace":false,"rows":10}','2026-11-15T20:21:03+00:00',0,'','9c5957acafe1093a87f3eac93771740c167d6c6c36de571f900b6e658e24bfeb');
INSERT INTO "lines" VALUES(3,'reserved','adults','1/2','ten rows','{"epsilon":"1/2","id":null,"replace":false,"rows":10}','2026-11-15T20:21:03+00:00',0,'','944b13fc31026ec092cd987fb4fbe2bb49b5426ab91c708eac87c86c511bde5e');
INSERT INTO "lines" VALUES(4,'opened','adults','','','','',3,'','0a1908ef2907432bb6e08249ba366a3d8c46072d6760eaf517fd01596524eadb');
INSERT INTO "lines" VALUES(5,'published','adults','','','','',3,'sha256:aa','d9a967b3836fe60eee2d1fe709e60596bef224117ff99020c0417725bcd081e8');
INSERT INTO "lines" VALUES(6,'reserved','adults','1/2','one row','{"epsilon":"1/20","id":null,"replace":false,"rows":1}','2026-11-15T20:21:03+00:00',0,'','1992a65a6c0afad617ffdb38e152216b7f66447eacfe6a51daabd8960c888384');
INSERT INTO "lines" VALUES(7,'created','children','1','','','2026-11-15T20:21:03+00:00',0,'','778354506c632e8c7469ed2b255d14812806e74773b319480a206a466fbdd1c8');
INSERT INTO "lines" VALUES(8,'reserved','children','1/10','first','','2026-11-15T20:21:03+00:00',0,'','b7b7bd670820adc778c2c237b0f76c33ed7c23e7e0707b3ae6f458999c50fc27');
INSERT INTO "lines" VALUES(9,'raised','children','2','approved by the board','','2026-11-15T20:21:03+00:00',0,'','65b609595d927cb116f688aaeb7dae9282af22729dc6bd2cae6bd9cb80cc207f');
CREATE TRIGGER lines_are_not_changed BEFORE UPDATE ON lines
        BEGIN SELECT RAISE(ABORT, 'lines of a ledger are never changed'); END;
CREATE TRIGGER lines_are_not_removed BEFORE DELETE ON lines
        BEGIN SELECT RAISE(ABORT, 'lines of a ledger are never removed'); END;
COMMIT;
