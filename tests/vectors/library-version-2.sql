-- A library of version 2: a text of a prompt and two iterations, and a branch of it. For tests/unit/library.c.
CREATE TABLE vocabulary(id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, tokens INTEGER NOT NULL) STRICT;
CREATE TABLE piece(vocabulary INTEGER NOT NULL REFERENCES vocabulary, token INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY(vocabulary, token)) STRICT, WITHOUT ROWID;
CREATE TABLE session(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL DEFAULT '', created INTEGER NOT NULL, changed INTEGER NOT NULL, vocabulary INTEGER REFERENCES vocabulary, header TEXT NOT NULL DEFAULT '', target_path TEXT NOT NULL DEFAULT '', draft_path TEXT NOT NULL DEFAULT '', at_branch INTEGER NOT NULL DEFAULT -1, at_length INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE branch(session INTEGER NOT NULL REFERENCES session, number INTEGER NOT NULL, parent INTEGER NOT NULL, fork INTEGER NOT NULL, name TEXT NOT NULL, marked INTEGER NOT NULL, deleted INTEGER NOT NULL, created INTEGER NOT NULL, drafter TEXT NOT NULL, indexed INTEGER NOT NULL, PRIMARY KEY(session, number)) STRICT, WITHOUT ROWID;
CREATE TABLE token(session INTEGER NOT NULL REFERENCES session, branch INTEGER NOT NULL, place INTEGER NOT NULL, token INTEGER NOT NULL, kind INTEGER NOT NULL, iteration INTEGER, p REAL, entropy REAL, rank INTEGER, likely BLOB, PRIMARY KEY(session, branch, place)) STRICT, WITHOUT ROWID;
CREATE TABLE iteration(session INTEGER NOT NULL REFERENCES session, number INTEGER NOT NULL, generation INTEGER NOT NULL, line TEXT NOT NULL, PRIMARY KEY(session, number)) STRICT;
CREATE TABLE generation(session INTEGER NOT NULL REFERENCES session, number INTEGER NOT NULL, place INTEGER NOT NULL, draft INTEGER NOT NULL, verify INTEGER NOT NULL, tokens INTEGER NOT NULL, header TEXT NOT NULL, PRIMARY KEY(session, number)) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(own);
INSERT INTO vocabulary VALUES(1,'letters',26);
INSERT INTO piece VALUES(1,0,x'61');
INSERT INTO piece VALUES(1,1,x'62');
INSERT INTO piece VALUES(1,2,x'63');
INSERT INTO piece VALUES(1,3,x'64');
INSERT INTO piece VALUES(1,4,x'65');
INSERT INTO piece VALUES(1,5,x'66');
INSERT INTO piece VALUES(1,6,x'67');
INSERT INTO piece VALUES(1,7,x'68');
INSERT INTO piece VALUES(1,8,x'69');
INSERT INTO piece VALUES(1,9,x'6a');
INSERT INTO piece VALUES(1,10,x'6b');
INSERT INTO piece VALUES(1,11,x'6c');
INSERT INTO piece VALUES(1,12,x'6d');
INSERT INTO piece VALUES(1,13,x'6e');
INSERT INTO piece VALUES(1,14,x'6f');
INSERT INTO piece VALUES(1,15,x'70');
INSERT INTO piece VALUES(1,16,x'71');
INSERT INTO piece VALUES(1,17,x'72');
INSERT INTO piece VALUES(1,18,x'73');
INSERT INTO piece VALUES(1,19,x'74');
INSERT INTO piece VALUES(1,20,x'75');
INSERT INTO piece VALUES(1,21,x'76');
INSERT INTO piece VALUES(1,22,x'77');
INSERT INTO piece VALUES(1,23,x'78');
INSERT INTO piece VALUES(1,24,x'79');
INSERT INTO piece VALUES(1,25,x'20');
INSERT INTO session VALUES(3,'the tale',1000,2000,1,'{"format":"espalier-session","version":"1.0","program":"test","target":{"name":"target","parameters":0},"vocabulary":{"size":26,"hash":"letters"},"context":0,"drafter":"fixed:K=2","verifier":"greedy","lossy":false,"sampling":{"temperature":0,"top_p":1,"top_k":0},"baseline":false,"backend":"cpu","load_seconds":0,"terminal":{"columns":0,"rows":0}}
','/target','',1,2147483647);
INSERT INTO branch VALUES(3,0,-1,0,'',0,0,1001,'fixed',0);
INSERT INTO branch VALUES(3,1,0,4,'other',1,0,1002,'fixed',0);
INSERT INTO token VALUES(3,0,0,3,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO token VALUES(3,0,1,14,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO token VALUES(3,0,2,6,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO token VALUES(3,0,3,25,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO token VALUES(3,0,4,1,1,0,0.5,1.5,1,x'010000000000003f070000000000803e');
INSERT INTO token VALUES(3,0,5,2,2,0,0.5,1.5,1,x'020000000000003f070000000000803e');
INSERT INTO token VALUES(3,0,6,0,2,1,0.5,1.5,1,x'000000000000003f070000000000803e');
INSERT INTO token VALUES(3,1,4,5,4,NULL,NULL,NULL,NULL,NULL);
INSERT INTO token VALUES(3,1,5,14,2,2,0.5,1.5,1,x'0e0000000000003f070000000000803e');
INSERT INTO iteration VALUES(3,0,0,'{"t":0.25,"type":"iteration","index":0,"position":4,"drafter":"fixed","verifier":"greedy","committed":[{"id":1},{"id":2}],"path":[1],"bonus":{"id":2},"deepest":1,"draft_passes":1,"target_passes":1,"mask_blocks":1,"seconds":{"draft":0.001,"flatten":0,"verify":0.002,"select":0,"commit":0,"adapt":0},"nodes":[{"id":25,"q":1,"cumulative_log_q":0},{"id":1,"parent":0,"depth":1,"q":0.5,"cumulative_log_q":-0.693147182,"p":0.5,"acceptance":1,"verdict":"accepted"}],"order":[0,1]}
');
INSERT INTO iteration VALUES(3,1,0,'{"t":0.5,"type":"iteration","index":1,"position":6,"drafter":"fixed","verifier":"greedy","committed":[{"id":0}],"bonus":{"id":0},"deepest":0,"draft_passes":1,"target_passes":1,"mask_blocks":1,"seconds":{"draft":0.001,"flatten":0,"verify":0.002,"select":0,"commit":0,"adapt":0},"nodes":[{"id":2,"q":1,"cumulative_log_q":0}],"order":[0]}
');
INSERT INTO iteration VALUES(3,2,1,'{"t":0.75,"type":"iteration","index":2,"position":5,"drafter":"fixed","verifier":"greedy","committed":[{"id":14}],"bonus":{"id":14},"deepest":0,"draft_passes":1,"target_passes":1,"mask_blocks":1,"seconds":{"draft":0.001,"flatten":0,"verify":0.002,"select":0,"commit":0,"adapt":0},"nodes":[{"id":5,"q":1,"cumulative_log_q":0}],"order":[0]}
');
INSERT INTO generation VALUES(3,0,4,0,0,8,'{"format":"espalier-session","version":"1.0","program":"test","target":{"name":"target","parameters":0},"vocabulary":{"size":26,"hash":"letters"},"context":0,"drafter":"fixed:K=2","verifier":"greedy","lossy":false,"sampling":{"temperature":0,"top_p":1,"top_k":0},"baseline":false,"backend":"cpu","load_seconds":0,"terminal":{"columns":0,"rows":0}}
');
INSERT INTO generation VALUES(3,1,5,10,11,8,'{"format":"espalier-session","version":"1.0","program":"test","target":{"name":"target","parameters":0},"vocabulary":{"size":26,"hash":"letters"},"context":0,"drafter":"fixed:K=2","verifier":"greedy","lossy":false,"sampling":{"temperature":0,"top_p":1,"top_k":0},"baseline":false,"backend":"cpu","load_seconds":0,"terminal":{"columns":0,"rows":0}}
');
INSERT INTO words(rowid,own) VALUES(3*4294967296,'dog bca');
PRAGMA user_version = 2;
