// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>

namespace ponderscope {

using Qt::StringLiterals::operator""_s;

/// The options of one `ponderscope record`, as the Run dialog requests it.
struct RecordRequest {
    QString checkpoint; ///< folder
    bool fromPrompt = false;
    /// A text, JSON Lines (.jsonl, also compressed), or token ids (.json, .safetensors; no tokenizer).
    QString textFile;
    QString prompt;
    QString fromRun;    ///< TRACE#RUN: record its sequences again; replaces the text
    QString forceSteps; ///< "SEQUENCE/POSITION:STEPS"; empty: none
    QString patch;      ///< patch file; only the patched run is recorded; empty: none
    QString method;     ///< empty: the checkpoint's method
    QString policy;     ///< "full", "learned"; empty: the method's own rule
    QStringList more;   ///< further options as words: "--kv=skip"
    QString device = u"cpu"_s;
    QString dtype = u"float32"_s;
    QString level = u"steps"_s;
    QString name;    ///< empty: the folder's name
    int context = 0; ///< 0: the program's default
    int stride = 0;
    int batch = 0;
    QString trace; ///< an existing trace gets an additional run
};

/// One sentence about missing or contradictory fields or files; empty: the request can start.
QString problem_of(const RecordRequest& request);

/// Joins options into a line as a user types them, and splits such a line.
QString option_line(const QStringList& words);
QStringList option_words(const QString& line);
/// A tooltip that describes the further options.
QString about_options();

/// All names for `ponderscope record --method`.
QStringList all_methods();

/// Arguments of `ponderscope`, starting with "record".
QStringList record_arguments(const RecordRequest& request);

/// \p arguments as a user types them, without --json and --progress=json.
QStringList as_typed(QStringList arguments);

/// The command line program beside this one or on PATH; empty: not found.
QString find_command_line_program();

/// The options of one `ponderscope generate`, as the Think panel requests it.
struct ThinkRequest {
    QString checkpoint; ///< folder
    QString prompt;
    QString from;        ///< TRACE#RUN: its tokens before \p at replace the prompt
    qint64 sequence = 0; ///< sequence of the run to continue
    qint64 at = 0;
    int force = 0;   ///< id of the token at position \p at
    int tokens = 40; ///< largest number of new tokens; 0: only read the prompt
    double temperature = 0;
    int topK = 0;    ///< number of most probable tokens to sample from; 0: all
    double topP = 1; ///< sample only from the smallest set of tokens with this total probability
    int seed = 0;
    QString policy;   ///< empty: the method's own rule
    QStringList more; ///< further options as words
    QString device = u"cpu"_s;
    QString name;  ///< empty: the prompt
    QString trace; ///< trace of the recorded run
};

/// One sentence about missing fields; empty: the request can start.
QString problem_of(const ThinkRequest& request);
/// Arguments of `ponderscope`, starting with "generate".
QStringList generate_arguments(const ThinkRequest& request);

} // namespace ponderscope
