-- SPDX-License-Identifier: GPL-3.0-or-later
-- The schema of a trace. The program and the Python package create traces from this text.
PRAGMA page_size=16384;
BEGIN IMMEDIATE;
PRAGMA application_id=1347374660;
PRAGMA user_version=2;
CREATE TABLE run ( -- One recording: a checkpoint, a method and a policy over sequences.
  id INTEGER PRIMARY KEY, -- from 1
  name TEXT NOT NULL UNIQUE, -- RUN in TRACE.ponder#RUN
  checkpoint TEXT NOT NULL, -- folder as the user gave it
  checkpoint_digest TEXT NOT NULL, -- SHA-256 of the checkpoint
  architecture TEXT NOT NULL, -- model_type of the backbone
  method TEXT NOT NULL, -- vanilla, ponderlm, ...
  depth_mixing TEXT NOT NULL, -- none, depth_attention, ...
  policy TEXT NOT NULL, -- halting rule: learned, full, ...
  scoring TEXT NOT NULL, -- exact, jacobi:3
  device TEXT NOT NULL, -- cpu, cuda:0 with the name of the GPU
  dtype TEXT NOT NULL, -- float32, tf32, bfloat16, float16
  record_level TEXT NOT NULL, -- scalars, basic, steps
  text_source TEXT NOT NULL, -- file, prompt or ids
  text_digest TEXT NOT NULL, -- SHA-256 of the text, or of the ids as little-endian int32
  tokenizer_digest TEXT NOT NULL, -- SHA-256 of the tokenizer's content; empty without one
  tokenizer INTEGER NOT NULL, -- key into vocabulary; runs of one tokenizer share it
  versions TEXT NOT NULL, -- JSON: programs and libraries
  config TEXT NOT NULL, -- config.json as read
  notices TEXT NOT NULL, -- JSON array of sentences
  seed INTEGER NOT NULL, -- 64 bits, shown signed
  max_steps INTEGER NOT NULL, -- K: the last step that a token can reach
  layers INTEGER NOT NULL, -- blocks of the backbone
  vocab_size INTEGER NOT NULL, -- rows of the output head
  context INTEGER NOT NULL, -- tokens per window
  stride INTEGER NOT NULL, -- tokens between the starts of windows
  started TEXT NOT NULL, -- ISO 8601, UTC
  seconds REAL NOT NULL, -- wall time so far
  complete INTEGER NOT NULL, -- 1: ended as planned; 0: partial, or still recording
  sequences INTEGER NOT NULL, -- sequences begun so far
  tokens INTEGER NOT NULL, -- of all sequences
  scored_tokens INTEGER NOT NULL, -- tokens with a target, that is with an nll
  nll_sum REAL NOT NULL, -- nats; over the scored tokens
  steps_sum REAL NOT NULL, -- over the scored tokens
  flops_sum REAL NOT NULL, -- over all tokens; 0: unknown
  scored_bytes INTEGER NOT NULL, -- bytes of text of the scored targets
  flops_model TEXT NOT NULL DEFAULT '', -- JSON: what slots, keys and decisions cost; empty if unknown
  step_unit TEXT NOT NULL DEFAULT 'step', -- step; layer if steps are blocks of the model
  choices TEXT NOT NULL DEFAULT '' -- JSON of options: kv, initial_state, threshold, rule, ...; empty if unknown
) STRICT;
CREATE TABLE sequence ( -- A text, or a prompt with its continuation.
  id INTEGER PRIMARY KEY, -- unique in the file
  run INTEGER NOT NULL, -- run.id
  number INTEGER NOT NULL, -- number in the run, from 0
  title TEXT NOT NULL, -- file name, or the beginning of the prompt
  text_bytes INTEGER NOT NULL, -- length of the text; 0 for ids only
  tokens INTEGER NOT NULL, -- recorded so far
  scored_tokens INTEGER NOT NULL, -- tokens with a target
  nll_sum REAL NOT NULL, -- nats; over the scored tokens
  steps_sum REAL NOT NULL, -- over the scored tokens
  flops_sum REAL NOT NULL, -- over all tokens; 0: unknown
  scored_bytes INTEGER NOT NULL, -- bytes of text of the scored targets
  complete INTEGER NOT NULL, -- 1: all tokens are recorded
  "group" TEXT DEFAULT NULL, -- group of dependent sequences: an author, a source; NULL: none
  text_crc32 INTEGER DEFAULT NULL, -- CRC-32 of its text; NULL: not stored
  tokens_crc32 INTEGER DEFAULT NULL, -- CRC-32 of its rows in token_row; NULL: not stored
  joined_number INTEGER DEFAULT NULL, -- in a shard: number in the whole run; NULL: same as number
  UNIQUE (run, number)
) STRICT;
CREATE TABLE text ( -- The text of sequences, in pieces.
  row INTEGER PRIMARY KEY, -- sequence.id * 4294967296 + number of the piece, from 0
  bytes BLOB NOT NULL -- 4000 bytes of UTF-8, the last piece fewer; may end inside a character
) STRICT;
CREATE TABLE token_row ( -- Scalars of each token. The view token shows them with run, sequence and position.
  row INTEGER PRIMARY KEY, -- sequence.id * 4294967296 + position
  id INTEGER NOT NULL, -- token id
  text_begin INTEGER NOT NULL, -- first byte in the sequence's text
  text_end INTEGER NOT NULL, -- byte after its last byte
  nll REAL, -- nats; of the NEXT token, predicted here; NULL: not scored
  entropy REAL, -- nats; of the prediction made here; NULL: not read out
  max_probability REAL, -- of the prediction made here; NULL: not read out
  rank INTEGER NOT NULL, -- of the next token: 1 + the number of larger logits; 0: not scored
  steps INTEGER NOT NULL, -- last step that ran here
  flops INTEGER NOT NULL -- floating-point operations of matrix products spent here; 0 in all rows: unknown
) STRICT;
CREATE TABLE signal ( -- One row for each signal of a run: an array with values for each token.
  id INTEGER PRIMARY KEY, -- unique in the file
  run INTEGER NOT NULL, -- run.id
  name TEXT NOT NULL, -- nll, kl_previous_current, candidate_ids, ...
  axes TEXT NOT NULL, -- JSON array; the first is always token
  unit TEXT NOT NULL, -- nats, probability, ...; empty for none
  title TEXT NOT NULL, -- for display
  description TEXT NOT NULL, -- one sentence
  dtype TEXT NOT NULL, -- type of all chunks: F32, F16, I32, ...
  storage TEXT NOT NULL, -- plain, compressed or trimmed (without the zeros at the end of the last axis)
  every_step INTEGER NOT NULL, -- 0: steps that did not run have NaN, or -1 in integers; 1: they have a value
  of_target INTEGER NOT NULL, -- 1: compares the prediction with the next token; NaN without one, or 0 in integers
  UNIQUE (run, name)
) STRICT;
CREATE TABLE chunk ( -- The values of signals, packed for consecutive tokens of a sequence.
  id INTEGER PRIMARY KEY,
  sequence INTEGER NOT NULL, -- sequence.id
  signal INTEGER NOT NULL, -- signal.id
  first_token INTEGER NOT NULL, -- position of the first token in this chunk
  tokens INTEGER NOT NULL, -- tokens in this chunk
  dtype TEXT NOT NULL, -- F32, F16, I32, ...; ends in +zstd if compressed
  shape TEXT NOT NULL, -- JSON array, [tokens, ...] along the signal's axes
  data BLOB NOT NULL, -- row-major, little-endian
  crc32 INTEGER DEFAULT NULL, -- CRC-32 of data; NULL: not stored
  UNIQUE (sequence, signal, first_token)
) STRICT;
CREATE TABLE vocabulary ( -- The bytes of token ids, candidates included.
  tokenizer INTEGER NOT NULL, -- run.tokenizer
  id INTEGER NOT NULL, -- token id
  bytes BLOB NOT NULL, -- bytes of the token; may be part of a character
  crc32 INTEGER DEFAULT NULL, -- CRC-32 of bytes; NULL: not stored
  PRIMARY KEY (tokenizer, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE fault ( -- Errors during the recording.
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL, -- run.id
  sequence INTEGER, -- number in the run, or NULL
  time TEXT NOT NULL, -- ISO 8601, UTC
  message TEXT NOT NULL -- one sentence
) STRICT;
CREATE TABLE label ( -- Classes of parts of the text, recorded with it.
  sequence INTEGER NOT NULL, -- sequence.id
  text_begin INTEGER NOT NULL, -- first byte in the sequence's text
  text_end INTEGER NOT NULL, -- byte after its last byte; labels of a sequence do not overlap
  class TEXT NOT NULL, -- class of this part of the text
  PRIMARY KEY (sequence, text_begin)
) STRICT, WITHOUT ROWID;
CREATE TABLE training ( -- How a model was trained.
  id INTEGER PRIMARY KEY, -- from 1
  name TEXT NOT NULL UNIQUE, -- name of the recipe
  description TEXT NOT NULL, -- of the recipe; may be empty
  architecture TEXT NOT NULL, -- model_type of the backbone
  method TEXT NOT NULL, -- vanilla, ponderlm, ...
  depth_mixing TEXT NOT NULL, -- none, depth_attention, ...
  recipe TEXT NOT NULL, -- JSON: the recipe with its defaults
  config TEXT NOT NULL, -- config.json of the model
  device TEXT NOT NULL, -- cpu, cuda:0
  precision TEXT NOT NULL, -- of matrix products: float32, bfloat16
  versions TEXT NOT NULL, -- JSON: programs and libraries
  parameters INTEGER NOT NULL, -- number of weights; a tied table counts once
  max_steps INTEGER NOT NULL, -- K: the last step of pondering that a token can reach
  planned_steps INTEGER NOT NULL, -- optimiser steps
  planned_tokens INTEGER NOT NULL, -- training tokens
  started TEXT NOT NULL, -- ISO 8601, UTC
  step INTEGER NOT NULL, -- step of the last point
  tokens INTEGER NOT NULL, -- training tokens up to this step
  seconds REAL NOT NULL, -- training time up to this step, without interruptions
  complete INTEGER NOT NULL, -- 1: ended as planned; 0: stopped, or still training
  fault TEXT NOT NULL -- why it ended early, one sentence; else empty
) STRICT;
CREATE TABLE training_quantity ( -- One row for each quantity that a training records.
  training INTEGER NOT NULL, -- training.id
  name TEXT NOT NULL, -- loss, held_out_nll, held_out_gate, ...
  axis TEXT NOT NULL, -- axis of place: step (of pondering), ...; empty: no axis
  unit TEXT NOT NULL, -- nats, ...; empty for none
  title TEXT NOT NULL, -- for display
  description TEXT NOT NULL, -- one sentence
  PRIMARY KEY (training, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE training_point ( -- The points of the curves.
  training INTEGER NOT NULL, -- training.id
  step INTEGER NOT NULL, -- optimiser steps so far
  quantity TEXT NOT NULL, -- training_quantity.name
  place INTEGER NOT NULL, -- index on the quantity's axis, from 0; 0 without an axis
  tokens INTEGER NOT NULL, -- training tokens so far
  seconds REAL NOT NULL, -- training time so far, without interruptions
  value REAL, -- NULL: not a number
  PRIMARY KEY (training, step, quantity, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE shard ( -- The part of a run that one process recorded.
  run INTEGER PRIMARY KEY, -- run.id
  rank INTEGER NOT NULL, -- of the process that recorded this part, from 0
  world INTEGER NOT NULL, -- number of processes of the run; 1: the whole run is here
  batch INTEGER NOT NULL -- windows computed together
) STRICT;
CREATE VIEW token AS -- Scalars of each token, with run, sequence, position. Filters on run and sequence are fast.
  SELECT s.run AS run, s.number AS sequence, t.row & 4294967295 AS position,
         t.id AS id, t.text_begin AS text_begin, t.text_end AS text_end, t.nll AS nll, t.entropy AS entropy, t.max_probability AS max_probability, t.rank AS rank, t.steps AS steps, t.flops AS flops
    FROM sequence s CROSS JOIN token_row t
      ON t.row >= s.id * 4294967296 AND t.row < (s.id + 1) * 4294967296;
CREATE VIEW token_text AS -- The same with the token's text (tokens over 4000 bytes are cut short).
  SELECT s.run AS run, s.number AS sequence, t.row & 4294967295 AS position,
         coalesce(substr(a.bytes, t.text_begin % 4000 + 1, t.text_end - t.text_begin), '') ||
         coalesce(substr(b.bytes, 1, max(0, t.text_begin % 4000 + t.text_end - t.text_begin - 4000)), '') AS text,
         t.id AS id, t.nll AS nll, t.entropy AS entropy, t.max_probability AS max_probability, t.rank AS rank, t.steps AS steps, t.flops AS flops
    FROM sequence s CROSS JOIN token_row t
      ON t.row >= s.id * 4294967296 AND t.row < (s.id + 1) * 4294967296
    LEFT JOIN text a ON a.row = s.id * 4294967296 + t.text_begin / 4000
    LEFT JOIN text b ON b.row = s.id * 4294967296 + t.text_begin / 4000 + 1
     AND t.text_begin % 4000 + t.text_end - t.text_begin > 4000;
CREATE VIEW target AS -- Each scored token with the nll, rank and steps of its prediction.
  SELECT t.run AS run, t.sequence AS sequence, t.position AS position, t.text AS text, t.id AS id, p.nll AS nll,
         p.entropy AS entropy, p.max_probability AS max_probability, p.rank AS rank, p.steps AS steps
    FROM token_text t JOIN sequence s ON s.run = t.run AND s.number = t.sequence
    JOIN token_row p ON p.row = s.id * 4294967296 + t.position - 1
   WHERE t.position > 0 AND p.nll IS NOT NULL;
CREATE VIEW run_summary AS -- One row for each run.
  SELECT id, name, method, policy, scoring, dtype, complete, sequences, tokens, scored_tokens,
         nll_sum / nullif(scored_tokens, 0) AS mean_nll, exp(nll_sum / nullif(scored_tokens, 0)) AS perplexity,
         nll_sum / 0.6931471805599453 / nullif(scored_bytes, 0) AS bits_per_byte,
         steps_sum / nullif(scored_tokens, 0) AS mean_steps, nullif(flops_sum, 0) / tokens AS flops_per_token,
         tokens / nullif(seconds, 0) AS tokens_per_second
    FROM run;
CREATE VIEW sequence_summary AS -- One row for each sequence.
  SELECT run, number AS sequence, title, complete, tokens, scored_tokens,
         nll_sum / nullif(scored_tokens, 0) AS mean_nll, exp(nll_sum / nullif(scored_tokens, 0)) AS perplexity,
         nll_sum / 0.6931471805599453 / nullif(scored_bytes, 0) AS bits_per_byte,
         steps_sum / nullif(scored_tokens, 0) AS mean_steps, "group"
    FROM sequence;
CREATE VIEW sequence_text AS -- The whole text of each sequence.
  SELECT s.run AS run, s.number AS sequence, s.title AS title,
         coalesce((SELECT group_concat(bytes, '') FROM
                    (SELECT bytes FROM text WHERE row >= s.id * 4294967296 AND row < (s.id + 1) * 4294967296 ORDER BY row)), '') AS text
    FROM sequence s;
CREATE VIEW signal_chunk AS -- The chunks of signals, with run, sequence and signal; data is the packed array.
  SELECT s.run AS run, s.number AS sequence, g.name AS signal, c.first_token AS first_token, c.tokens AS tokens,
         c.dtype AS dtype, c.shape AS shape, length(c.data) AS bytes, c.data AS data
    FROM sequence s JOIN chunk c ON c.sequence = s.id JOIN signal g ON g.id = c.signal;
COMMIT;
