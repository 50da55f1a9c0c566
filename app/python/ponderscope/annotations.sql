-- SPDX-License-Identifier: GPL-3.0-or-later
-- The schema of annotations. The program creates the file from this text.
PRAGMA page_size=16384;
PRAGMA application_id=1347306561;
PRAGMA user_version=1;
CREATE TABLE annotation ( -- A number or a category for each token of a run.
  id INTEGER PRIMARY KEY, -- from 1
  run TEXT NOT NULL, -- name of the run in the trace
  name TEXT NOT NULL, -- letters, digits and underscores
  kind TEXT NOT NULL, -- number or category
  text_digest TEXT NOT NULL, -- run.text_digest when it was annotated
  tokenizer_digest TEXT NOT NULL, -- run.tokenizer_digest when it was annotated
  sequences INTEGER NOT NULL, -- run.sequences when it was annotated
  tokens INTEGER NOT NULL, -- run.tokens when it was annotated
  created TEXT NOT NULL, -- ISO 8601, UTC
  UNIQUE (run, name)
) STRICT;
CREATE TABLE annotation_class ( -- The classes of categories.
  annotation INTEGER NOT NULL, -- annotation.id
  number INTEGER NOT NULL, -- from 0
  name TEXT NOT NULL, -- name of the class
  PRIMARY KEY (annotation, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE annotation_value ( -- One row for each token with a value.
  annotation INTEGER NOT NULL, -- annotation.id
  sequence INTEGER NOT NULL, -- number in the run, from 0
  position INTEGER NOT NULL, -- position of the token, from 0
  value REAL NOT NULL, -- the number, or annotation_class.number
  PRIMARY KEY (annotation, sequence, position)
) STRICT, WITHOUT ROWID;
