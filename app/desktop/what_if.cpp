// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/what_if.h"

#include "app/desktop/run_controller.h"
#include "core/trace/recorded_choices.h"
#include "views/common/format.h"

#include <QJsonDocument>
#include <QJsonObject>
#include <QMenu>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

QString steps_in_words(int steps) {
    return steps == 1 ? u"1 step"_s : u"%1 steps"_s.arg(steps);
}

} // namespace

void WhatIf::startWhatIf(const WhatIfQuestion& question) {
    if (runs_.recorder().isRunning()) { // this would replace its patch file
        messages_->show("recording.running", u"A recording is running. Wait for it or cancel it."_s);
        return;
    }
    std::optional<RecordRequest> request = runs_.requestLikeA([this, question] { startWhatIf(question); });
    if (!request) {
        return;
    }
    const RunKey key = selection_.runA();
    const RunInfo* run = data_.run(key);
    const QString forced = QString::fromStdString(run->policy).section(u"; forced "_s, 1);
    request->forceSteps = question.forceSteps;
    if (!forced.isEmpty()) {
        request->forceSteps += (request->forceSteps.isEmpty() ? QString() : u","_s) + forced;
    }
    if (!question.ablate.isEmpty()) {
        request->more << u"--ablate-source="_s + question.ablate;
    }
    const std::optional<QString> patch = patchFile(*run, question.patches);
    if (!patch) {
        return;
    }
    request->patch = *patch;
    request->name = QString::fromStdString(run->name) + u' ' + question.name;
    runs_.ask(std::move(*request), key);
}

void WhatIf::giveSteps(qint64 token, int steps) {
    const qint64 row = selection_.rowOf(token);
    if (row >= 0) {
        startWhatIf({u"%1/%2:%3"_s.arg(selection_.sequence()).arg(row).arg(steps),
                     {},
                     u"with %1 at %2"_s.arg(steps_in_words(steps)).arg(row)});
    }
}

void WhatIf::leaveSourceOut(int source, int layer) {
    startWhatIf({{},
                 layer < 0 ? QString::number(source) : u"%1:%2"_s.arg(source).arg(layer),
                 layer < 0 ? u"without source %1"_s.arg(source)
                           : u"without source %1 in layer %2"_s.arg(source).arg(layer)});
}

std::optional<QString> WhatIf::patchFile(const RunInfo& run, const QJsonArray& more) {
    QJsonArray patches = QJsonDocument::fromJson(QByteArray::fromStdString(run.choices))
                             .object()
                             .value(QLatin1String("patches"))
                             .toArray();
    for (const QJsonValue one : more) {
        // If two patches have the same target, the later patch wins.
        const QJsonValue to = one.toObject().value(QLatin1String("to"));
        for (qsizetype i = patches.size(); i-- > 0;) {
            if (patches[i].toObject().value(QLatin1String("to")) == to) {
                patches.removeAt(i);
            }
        }
        patches.append(one);
    }
    if (patches.isEmpty()) {
        return QString();
    }
    patchFolder_ = std::make_unique<QTemporaryDir>();
    QFile file(patchFolder_->filePath(u"patches.json"_s));
    const QByteArray json = QJsonDocument(QJsonObject{{u"patches"_s, patches}}).toJson();
    if (!patchFolder_->isValid() || !file.open(QIODevice::WriteOnly) || file.write(json) != json.size() ||
        !file.flush()) {
        messages_->show("what-if.no-patch-file", u"The patch could not be written to %1: %2."_s.arg(
                                                     file.fileName(), file.errorString()));
        return std::nullopt;
    }
    return file.fileName();
}

QString WhatIf::wordAt(qint64 token) const {
    const auto block = text_->view().sequence();
    if (!block || token < 0 || token >= static_cast<qint64>(block->tokens.size())) {
        return {};
    }
    QString word =
        visible_token(token_bytes(block->tokens, block->text, static_cast<std::size_t>(token)), 20);
    return word.replace(u'&', u"&&"_s);
}

void WhatIf::takeState(qint64 token, int step, int layer) {
    if (const qint64 row = selection_.rowOf(token); row >= 0) {
        taken_ = {selection_.runA(), selection_.sequence(), row, step, layer, wordAt(token)};
    }
}

void WhatIf::putState(qint64 token, int step) {
    const qint64 row = selection_.rowOf(token);
    if (row < 0 || !(taken_.run == selection_.runA())) {
        return;
    }
    const auto place = [this](qint64 sequence, qint64 position, int at) {
        return QJsonObject{{u"sequence"_s, sequence},
                           {u"token"_s, position},
                           {u"step"_s, at},
                           {u"layer"_s, taken_.layer < 0 ? QJsonValue() : QJsonValue(taken_.layer)}};
    };
    startWhatIf(
        {{},
         {},
         u"with token %1 step %2 at token %3 step %4"_s.arg(taken_.row).arg(taken_.step).arg(row).arg(step),
         {QJsonObject{{u"to"_s, place(selection_.sequence(), row, step)},
                      {u"from"_s, place(taken_.sequence, taken_.row, taken_.step)}}}});
}

void WhatIf::fillCarry(QMenu& menu, qint64 token, const RunInfo& run, int ran, const QString& word) {
    const auto after = [&run](int step, int layer) {
        return layer < 0 ? (run.step_unit == "layer" ? u"after block %1"_s : u"after step %1"_s).arg(step)
                         : u"after step %1, layer %2"_s.arg(step).arg(layer);
    };
    const int most = std::min(ran, 64);
    // The selected layer was chosen in the Steps or Depth panel, perhaps for another run. If the run's
    // signals have sublayers, the selection is the number of a sublayer, so no layer is offered.
    const auto signalInfos = data_.signalsOf(selection_.runA());
    const bool by_sublayer = std::ranges::any_of(signalInfos, [](const SignalInfo& info) {
        return std::ranges::find(info.axes, "sublayer") != info.axes.end();
    });
    const bool chosen = run.step_unit != "layer" && !by_sublayer && selection_.layer() < run.layers;
    const int layer = chosen ? selection_.layer() : -1;
    QMenu* take = menu.addMenu(u"Copy the State of “%1”"_s.arg(word));
    for (int step = 0; step <= most; ++step) {
        take->addAction(after(step, -1), this, [this, token, step] { takeState(token, step, -1); });
        if (layer >= 0) {
            take->addAction(after(step, layer), this,
                            [this, token, step, layer] { takeState(token, step, layer); });
        }
    }
    if (!taken_.run.isValid() || !(taken_.run == selection_.runA())) {
        menu.addAction(u"Paste a State Here"_s)->setEnabled(false);
        return;
    }
    QMenu* put = menu.addMenu(
        u"Paste the State of “%1” (%2) Here"_s.arg(taken_.word, after(taken_.step, taken_.layer)));
    for (int step = 0; step <= most; ++step) {
        put->addAction(after(step, taken_.layer), this, [this, token, step] { putState(token, step); });
    }
}

void WhatIf::fillWhatIf(QMenu& menu, qint64 token) {
    const RunInfo* run = data_.run(selection_.runA());
    const auto block = text_->view().sequence();
    const qint64 row = token < 0 ? -1 : selection_.rowOf(token);
    if (run == nullptr || !block || row < 0 || row >= static_cast<qint64>(block->tokens.size())) {
        menu.addAction(u"Choose a word first"_s)->setEnabled(false);
        return;
    }
    const int most = static_cast<int>(std::min<qint64>(run->max_steps, 64));
    const int now = block->tokens.steps[static_cast<std::size_t>(row)];
    const QString named = wordAt(token);
    QMenu* steps = menu.addMenu(u"Set the Steps of “%1”"_s.arg(named));
    steps->setEnabled(most > 0);
    for (int step = 0; step <= most; ++step) {
        QAction* action = steps->addAction(step == now ? u"%1 (unchanged)"_s.arg(steps_in_words(step))
                                                       : steps_in_words(step),
                                           this, [this, token, step] { giveSteps(token, step); });
        action->setEnabled(step != now);
    }
    fillCarry(menu, token, *run, now, named);
    QMenu* sources = menu.addMenu(u"Remove a Depth Source"_s);
    sources->setEnabled(run->depth_mixing == "depth_attention");
    for (int layer = 0; layer + 1 < std::min<qint64>(run->layers, 256); ++layer) {
        sources->addAction(u"Source: layer %1"_s.arg(layer), this,
                           [this, layer] { leaveSourceOut(layer, -1); });
    }
    if (selection_.layer() > 0 && selection_.layer() < run->layers &&
        run->depth_mixing == "depth_attention") {
        const int at = selection_.layer();
        QMenu* here = menu.addMenu(u"Remove a Depth Source in Layer %1"_s.arg(at));
        for (int layer = 0; layer < at; ++layer) {
            here->addAction(u"Source: layer %1"_s.arg(layer), this,
                            [this, layer, at] { leaveSourceOut(layer, at); });
        }
    }
}

} // namespace ponderscope
