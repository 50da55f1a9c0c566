// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/related_dialog.h"

#include "app/desktop/path_edit.h"
#include "app/desktop/record_command.h"
#include "views/common/command_line.h"
#include "views/common/format.h"
#include "views/common/theme.h"
#include "views/common/view_command.h"
#include "views/figure/chart_view.h"

#include <QDialogButtonBox>
#include <QFileInfo>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include <array>
#include <cmath>
#include <utility>

namespace ponderscope {

namespace {

using figure::Chart;

/// A line says no more than this; a result of a deep model is some hundred kilobytes.
constexpr qsizetype longest_result = 64 << 20;

/// "3", or "3 – 5" where A's layer 3 is compared with B's layer 5.
QString pair_name(int a, int b) {
    return a == b ? QString::number(a) : QStringLiteral("%1 – %2").arg(a).arg(b);
}

/// Bars side by side: one group a pair of layers, one bar a measure.
Chart bars(const QString& title, const QString& value, const std::vector<QString>& pairs,
           const std::vector<std::pair<QString, std::vector<double>>>& measures) {
    Chart chart;
    chart.title = title;
    chart.x.label = RelatedDialog::tr("layers of A – B");
    chart.x.names = pairs;
    chart.y.label = value;
    chart.y.from_zero = true;
    chart.y.high = 1; // both measures end there: small bars are small
    const double wide = 0.86 / static_cast<double>(measures.size());
    chart.dx = wide / 0.8; // of which a bar takes most
    for (std::size_t m = 0; m < measures.size(); ++m) {
        Chart::Series series;
        series.name = measures[m].first;
        series.mark = Chart::Mark::bar;
        series.ink = static_cast<int>(m);
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            series.x.push_back(static_cast<double>(i) + wide * (static_cast<double>(m) + 0.5) - 0.43);
            series.y.push_back(measures[m].second[i]);
            series.labels.push_back(
                RelatedDialog::tr("%1, layers %2: %3")
                    .arg(measures[m].first, pairs[i], format_nats(measures[m].second[i], 4)));
        }
        chart.series.push_back(std::move(series));
    }
    return chart;
}

Chart attention_chart(const LineageResult& result) {
    std::vector<QString> pairs;
    std::vector<double> query;
    std::vector<double> key;
    for (const LineageResult::Layer& layer : result.layers) {
        pairs.push_back(pair_name(layer.a, layer.b));
        query.push_back(layer.query);
        key.push_back(layer.key);
    }
    Chart chart =
        bars(RelatedDialog::tr("AWM: similarity of the query and key weights"), RelatedDialog::tr("CKA"),
             pairs, {{QStringLiteral("W_q"), query}, {QStringLiteral("W_k"), key}});
    if (!std::isnan(result.relatedFrom) && !pairs.empty()) {
        Chart::Series line;
        line.name = RelatedDialog::tr("common origin, if the mean is above");
        line.ink = Chart::text;
        line.dashed = true;
        line.x = {-0.5, static_cast<double>(pairs.size()) - 0.5};
        line.y = {result.relatedFrom, result.relatedFrom};
        chart.series.push_back(std::move(line));
    }
    return chart;
}

Chart terms_chart(const LineageResult& result) {
    std::vector<QString> pairs;
    std::array<std::vector<double>, 3> terms;
    for (const LineageResult::HurefLayer& layer : result.hurefLayers) {
        pairs.push_back(pair_name(layer.a, layer.b));
        terms[0].push_back(layer.queryKey);
        terms[1].push_back(layer.valueOutput);
        terms[2].push_back(layer.upDown);
    }
    return bars(RelatedDialog::tr("HuRef: products of weights"), RelatedDialog::tr("correlation"), pairs,
                {{QStringLiteral("W_q W_k"), terms[0]},
                 {QStringLiteral("W_v W_o"), terms[1]},
                 {QStringLiteral("W_u W_d"), terms[2]}});
}

} // namespace

RelatedDialog::RelatedDialog(Theme& theme, QWidget* parent)
    : QDialog(parent),
      theme_(theme),
      a_(new PathEdit(PathEdit::Kind::folder, tr("Checkpoint A"), {}, this)),
      b_(new PathEdit(PathEdit::Kind::folder, tr("Checkpoint B"), {}, this)),
      verdict_(new QLabel(this)),
      words_(new QLabel(this)),
      figures_(new QLabel(this)),
      attention_(new ChartView(theme, this)),
      terms_(new ChartView(theme, this)),
      notices_(new QLabel(this)),
      command_(new CommandLine(theme, this)) {
    setWindowTitle(tr("Related checkpoints"));
    resize(860, 620);
    for (QLabel* label : {verdict_, words_, figures_, notices_}) {
        label->setTextFormat(Qt::PlainText);
        label->setWordWrap(true);
        label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    }
    verdict_->setFont(theme.headline());
    words_->setForegroundRole(QPalette::PlaceholderText);
    notices_->setForegroundRole(QPalette::PlaceholderText);
    notices_->setFont(theme.small());
    attention_->setAccessibleName(tr("AWM by layer"));
    terms_->setAccessibleName(tr("HuRef by layer"));

    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(14);
    grid->setVerticalSpacing(9);
    grid->setColumnStretch(1, 1);
    const std::pair<QString, QWidget*> rows[] = {
        {tr("Checkpoint A"), a_}, {tr("Checkpoint B"), b_}, {tr("Command"), command_}};
    int row = 0;
    for (const auto& [text, field] : rows) {
        auto* label = new QLabel(text, this);
        label->setForegroundRole(QPalette::PlaceholderText);
        label->setBuddy(field);
        grid->addWidget(label, row, 0);
        grid->addWidget(field, row++, 1);
    }
    auto* charts = new QHBoxLayout;
    charts->setSpacing(18);
    charts->addWidget(attention_, 3);
    charts->addWidget(terms_, 2);
    auto* buttons = new QDialogButtonBox(this);
    start_ = buttons->addButton(tr("Related?"), QDialogButtonBox::ActionRole);
    start_->setDefault(true);
    buttons->addButton(QDialogButtonBox::Close)->setAutoDefault(false);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(20, 18, 20, 16);
    column->setSpacing(12);
    column->addLayout(grid);
    column->addSpacing(4);
    column->addWidget(verdict_);
    column->addWidget(words_);
    column->addWidget(figures_);
    column->addLayout(charts, 1);
    column->addWidget(notices_);
    column->addWidget(buttons);

    connect(start_, &QPushButton::clicked, this, &RelatedDialog::startOrStop);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    for (PathEdit* path : {a_, b_}) {
        connect(path, &PathEdit::changed, this, &RelatedDialog::forget);
    }
    connect(&engine_, &EngineProcess::outputLine, this, [this](const QByteArray& line) {
        if (output_.size() + line.size() < longest_result) {
            output_ += line + '\n';
        }
    });
    connect(&engine_, &EngineProcess::errorLine, this, &RelatedDialog::readProgress);
    connect(&engine_, &EngineProcess::ended, this, &RelatedDialog::end);
    connect(&engine_, &EngineProcess::failedToStart, this, [this](const QString& sentence) {
        check();
        say(tr("Not compared"), sentence);
    });
    start_->setFocus();
    forget();
}

void RelatedDialog::setCheckpoints(const QString& a, const QString& b) {
    a_->setPath(a);
    b_->setPath(b);
}

QString RelatedDialog::problem() const {
    if (a_->path().isEmpty() || b_->path().isEmpty()) {
        return tr("Choose checkpoint %1.").arg(a_->path().isEmpty() ? u'A' : u'B');
    }
    QString found = problem_of_checkpoint(a_->path());
    if (found.isEmpty()) {
        found = problem_of_checkpoint(b_->path());
    }
    if (found.isEmpty() &&
        QFileInfo(a_->path()).canonicalFilePath() == QFileInfo(b_->path()).canonicalFilePath()) {
        found = tr("Both are the same folder; choose another checkpoint to compare it with.");
    }
    return found;
}

QStringList RelatedDialog::arguments() const {
    const auto absolute = [](const PathEdit& edit) {
        return edit.path().isEmpty() ? QString() : QFileInfo(edit.path()).absoluteFilePath();
    };
    return {QStringLiteral("lineage"), absolute(*a_), absolute(*b_), QStringLiteral("--json"),
            QStringLiteral("--progress=json")};
}

QString RelatedDialog::commandLine() const {
    return command_->shown();
}

QString RelatedDialog::verdict() const {
    return verdict_->text();
}

QString RelatedDialog::words() const {
    return words_->text();
}

void RelatedDialog::check() {
    const bool running = engine_.isRunning();
    start_->setText(running ? tr("Stop") : tr("Related?"));
    start_->setEnabled(running || problem().isEmpty());
    a_->setEnabled(!running);
    b_->setEnabled(!running);
    command_->setCommand(shell_command(as_typed(arguments())));
}

void RelatedDialog::forget() {
    result_.reset();
    check();
    const QString found = problem();
    say(tr("Do they have a common origin?"),
        found.isEmpty() ? tr("Their weights are compared; no model runs, and nothing of either is changed.")
                        : found);
    showResult();
}

void RelatedDialog::startOrStop() {
    if (engine_.isRunning()) {
        engine_.cancel();
        say(tr("Stopping…"), {});
        return;
    }
    forget();
    if (!problem().isEmpty()) {
        return;
    }
    output_.clear();
    if (const QString refused = engine_.start(arguments()); !refused.isEmpty()) {
        say(tr("Not compared"), refused);
    } else if (engine_.isRunning()) {
        say(tr("Comparing…"), tr("Reading the weights"));
    }
    check();
}

void RelatedDialog::readProgress(const QByteArray& line) {
    const QJsonObject object = QJsonDocument::fromJson(line).object();
    const QString activity = object.value(QLatin1String("activity")).toString();
    const qint64 total = object.value(QLatin1String("total")).toInteger();
    if (activity.isEmpty() || result_) {
        return;
    }
    words_->setText(total > 0
                        ? tr("%1: %2 of %3 %4")
                              .arg(activity, format_count(object.value(QLatin1String("done")).toInteger()),
                                   format_count(total), object.value(QLatin1String("unit")).toString())
                        : activity);
}

void RelatedDialog::end(EngineProcess::End end, const QString& sentence) {
    check();
    switch (end) {
    case EngineProcess::End::cancelled:
        say(tr("Stopped"), tr("Nothing was compared."));
        return;
    case EngineProcess::End::crashed:
        say(tr("Not compared"),
            tr("The comparison ended unexpectedly, perhaps for want of memory; the window is not affected."));
        return;
    case EngineProcess::End::refused:
        say(tr("Not compared"), sentence);
        return;
    case EngineProcess::End::done:
        break;
    }
    result_ = LineageResult::parse(output_);
    output_.clear();
    if (!result_) {
        say(tr("Not compared"), tr("The program ended without a result; is it of another version?"));
        return;
    }
    QString verdict = result_->verdict;
    if (!verdict.isEmpty()) {
        verdict[0] = verdict[0].toUpper();
    }
    say(verdict, result_->sentence);
    showResult();
}

void RelatedDialog::showResult() {
    const bool shown = result_.has_value();
    for (QWidget* widget : {static_cast<QWidget*>(figures_), static_cast<QWidget*>(notices_)}) {
        widget->setVisible(shown);
    }
    attention_->setVisible(shown);
    terms_->setVisible(shown);
    if (!shown) {
        return;
    }
    QStringList figures{tr("AWM similarity %1").arg(format_nats(result_->similarity, 4)),
                        tr("z %1 (%2 by the published deviation)")
                            .arg(format_nats(result_->z, 1), format_nats(result_->zPublished, 1)),
                        result_->huref
                            ? tr("HuRef ICS %1, which decides nothing").arg(format_nats(result_->ics, 4))
                            : tr("HuRef not computed: %1").arg(result_->whyNoHuref)};
    figures_->setText(figures.join(QStringLiteral("   ·   ")));
    attention_->setChart(attention_chart(*result_));
    if (result_->huref) {
        terms_->setChart(terms_chart(*result_));
    } else {
        terms_->setHint(tr("HuRef was not computed."));
    }
    notices_->setText((result_->notices + QStringList{tr("Basis: %1").arg(result_->basis)}).join(u'\n'));
}

void RelatedDialog::say(const QString& verdict, const QString& words) {
    verdict_->setText(verdict);
    words_->setText(words);
    words_->setVisible(!words.isEmpty());
}

} // namespace ponderscope
