// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>

namespace ponderscope {

using Qt::StringLiterals::operator""_s;

/// A sentence about missing files of a checkpoint folder, judged by names only; empty: none.
QString problem_of_checkpoint(const QString& folder);
/// Whether what is recorded are token ids rather than text, by the file's name.
bool holds_ids(const QString& file);
/// The request of the Run dialog: one `ponderscope record`.
struct RecordRequest {
    QString checkpoint; ///< folder
    bool fromPrompt = false;
    /// A text file, JSON Lines (.jsonl, packed too), or ids (.json, .safetensors) for checkpoints without a
    /// tokenizer.
    QString textFile;
    QString prompt;
    QString fromRun;    ///< TRACE#RUN: its sequences again, instead of a text
    QString forceSteps; ///< "SEQUENCE/POSITION:STEPS"; empty: none
    QString patch;      ///< file of states that are put in; the run without them is not recorded; empty: none
    QString method;     ///< empty: what the checkpoint says
    QString policy;     ///< policy: "full", "learned"; empty: the method's own rule
    QStringList more;   ///< further options, as words: "--kv=skip"
    QString device = u"cpu"_s;
    QString dtype = u"float32"_s;
    QString level = u"steps"_s;
    QString name;    ///< empty: the folder's name
    int context = 0; ///< 0: what the program chooses
    int stride = 0;
    int batch = 0;
    QString trace; ///< a run is added when it exists
};

/// A sentence about missing or contradictory fields for the dialog; empty: the request can start. It checks
/// that files exist, not their content.
QString problem_of(const RecordRequest& request);

/// Further options as a person types them, and as words.
QString option_line(const QStringList& words);
QStringList option_words(const QString& line);
/// What further options there are, for a tooltip.
QString about_options();

/// Every method that `ponderscope record --method` knows, by name.
QStringList all_methods();

/// Arguments for `ponderscope`, from "record" on.
QStringList record_arguments(const RecordRequest& request);

/// \p arguments without what only a program reads: for a person's terminal.
QStringList as_typed(QStringList arguments);

/// The Qt-free program beside this one or on PATH; empty when there is none.
QString find_command_line_program();

/// The request of the Think panel: one `ponderscope generate`.
struct ThinkRequest {
    QString checkpoint; ///< folder
    QString prompt;
    int tokens = 40; ///< new ones at most; 0: the prompt is read and nothing generated
    double temperature = 0;
    int topK = 0;    ///< sample from this number of most probable tokens; 0: all
    double topP = 1; ///< of sampling: of those, the smallest set with this much of their probability
    int seed = 0;
    QString policy;   ///< empty: the method's own
    QStringList more; ///< further options, as words
    QString device = u"cpu"_s;
    QString trace; ///< trace of the recorded run
};

/// A sentence about missing fields for the panel; empty: it can start.
QString problem_of(const ThinkRequest& request);
/// Arguments for `ponderscope`, from "generate" on.
QStringList generate_arguments(const ThinkRequest& request);

} // namespace ponderscope
