// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/training/training_view.h"

#include "views/common/format.h"
#include "views/common/paths.h"
#include "views/common/readout.h"
#include "views/figure/chart_view.h"
#include "views/figure/figure_command.h"

#include <QComboBox>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QSlider>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

/// As many as there are colours: more lines could not be told apart.
constexpr std::size_t most_trainings = 10;
constexpr int slider_steps = 50;

/// The slider's places are even in how many points a mean reaches back over: 1 to 200.
double weight_of(int place) {
    return place <= 0 ? 0 : 1 - std::pow(200.0, -static_cast<double>(place) / slider_steps);
}

} // namespace

TrainingView::TrainingView(ViewContext context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      work_(this),
      axis_(new QComboBox(this)),
      smoothing_(new QSlider(Qt::Horizontal, this)),
      readout_(new Readout(context.theme, this)),
      legend_(new QLabel(this)),
      quantities_(new QComboBox(this)),
      body_(new QWidget(this)),
      hint_(new QLabel(this)) {
    axis_->addItem(tr("Steps"), static_cast<int>(TrainingAxis::steps));
    axis_->addItem(tr("Tokens"), static_cast<int>(TrainingAxis::tokens));
    axis_->addItem(tr("Time"), static_cast<int>(TrainingAxis::seconds));
    axis_->setAccessibleName(tr("Curves over"));
    axis_->setToolTip(tr("What the curves are drawn over"));
    smoothing_->setRange(0, slider_steps);
    smoothing_->setValue(0);
    smoothing_->setFixedWidth(120);
    smoothing_->setAccessibleName(tr("Smoothing"));
    quantities_->setAccessibleName(tr("Third chart"));
    quantities_->setToolTip(tr("What the third chart shows"));
    legend_->setTextFormat(Qt::RichText);
    legend_->setWordWrap(true);
    legend_->setAccessibleName(tr("Trainings"));
    hint_->setAlignment(Qt::AlignCenter);
    hint_->setWordWrap(true);
    hint_->setTextFormat(Qt::PlainText);

    auto* over = new QLabel(tr("over"), this);
    auto* smooth = new QLabel(tr("smoothing"), this);
    auto* row = new QHBoxLayout;
    row->setSpacing(8);
    row->addWidget(over);
    row->addWidget(axis_);
    row->addSpacing(10);
    row->addWidget(smooth);
    row->addWidget(smoothing_);
    row->addSpacing(10);
    row->addWidget(readout_, 1);
    auto* charts = new QHBoxLayout;
    charts->setSpacing(18);
    for (ChartView*& chart : charts_) {
        chart = new ChartView(context_.theme, body_);
    }
    auto* third = new QVBoxLayout;
    third->setSpacing(4);
    third->addWidget(quantities_, 0, Qt::AlignLeft);
    third->addWidget(charts_[further], 1);
    charts->addWidget(charts_[loss], 5);
    charts->addWidget(charts_[steps], 4);
    charts->addLayout(third, 4);
    auto* inner = new QVBoxLayout(body_);
    inner->setContentsMargins(0, 0, 0, 0);
    inner->setSpacing(6);
    inner->addLayout(row);
    inner->addWidget(legend_);
    inner->addLayout(charts, 1);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(14, 10, 14, 8);
    column->addWidget(body_, 1);
    column->addWidget(hint_, 1);

    const auto dress = [this, over, smooth] {
        for (QLabel* label : {over, smooth, legend_, hint_}) {
            QPalette palette = label->palette();
            palette.setColor(QPalette::WindowText, context_.theme.colours().soft);
            label->setPalette(palette);
            label->setFont(label == hint_ ? context_.theme.body() : context_.theme.small());
        }
    };
    dress();
    connect(&context_.theme, &Theme::changed, this, [this, dress] {
        dress();
        showLegend();
    });
    connect(axis_, &QComboBox::currentIndexChanged, this, &TrainingView::showCharts);
    connect(smoothing_, &QSlider::valueChanged, this, &TrainingView::showCharts);
    connect(quantities_, &QComboBox::currentIndexChanged, this, &TrainingView::showCharts);
    for (const Place place : {loss, steps, further}) {
        connect(charts_[place], &ChartView::markHovered, this,
                [this, place](int series, int index) { showReadout(place, series, index); });
        connect(charts_[place], &ChartView::markClicked, this,
                [this, place](int series, int index) { choose(place, series, index); });
    }
    follow(*this, context_, Follows::all);
    renew();
}

QString TrainingView::hint() const {
    return hint_->isHidden() ? QString() : hint_->text();
}

QString TrainingView::readout() const {
    return readout_->said();
}

void TrainingView::showHint(const QString& sentence) {
    hint_->setText(sentence);
    hint_->setVisible(!sentence.isEmpty());
    body_->setVisible(sentence.isEmpty());
}

void TrainingView::renew() {
    std::vector<std::filesystem::path> traces;
    QString wanted;
    const QStringList open = context_.data.traces();
    for (const QString& trace : open) {
        const auto trainings = context_.data.trainings(trace);
        if (trainings.empty()) {
            continue;
        }
        traces.push_back(path_of(trace));
        wanted += trace + u'\n';
        for (const TrainingInfo& training : trainings) {
            wanted += QStringLiteral("%1 %2 %3 %4 %5 %6\n")
                          .arg(training.id)
                          .arg(training.step)
                          .arg(training.seconds, 0, 'g', 17)
                          .arg(training.complete)
                          .arg(training.fault.size())
                          .arg(context_.data.runs(trace).size());
        }
    }
    if (traces.empty()) {
        asked_.clear();
        work_.cancel();
        trainings_.clear();
        showHint(
            tr("No open trace has a training in it. “ponderscope train RECIPE.json -o FOLDER” writes one as "
               "it goes: drop the folder on the window, while it trains or afterwards."));
        return;
    }
    if (wanted == asked_) {
        return;
    }
    asked_ = wanted;
    if (trainings_.empty()) {
        showHint(tr("Reading the curves…"));
    }
    work_.start(
        [traces](const std::stop_token& stop) {
            std::vector<TrainingRecord> all;
            for (const std::filesystem::path& trace : traces) {
                for (TrainingRecord& one : read_trainings(trace, stop)) {
                    all.push_back(std::move(one));
                }
            }
            const std::size_t found = all.size();
            if (found > most_trainings) {
                all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(most_trainings));
            }
            return std::pair(std::move(all), found);
        },
        [this](std::pair<std::vector<TrainingRecord>, std::size_t> read) {
            trainings_ = std::move(read.first);
            found_ = read.second;
            fillQuantities();
            const bool any = std::any_of(trainings_.begin(), trainings_.end(), [](const auto& training) {
                return training.curve(training_quantity::loss) != nullptr;
            });
            showHint(any ? QString() : tr("The training has just begun; its first point is still to come."));
            showCharts();
        },
        [this](const QString& sentence) {
            trainings_.clear();
            showHint(sentence);
        });
}

void TrainingView::fillQuantities() {
    const QString chosen = quantities_->currentData().toString();
    const std::vector<TrainingQuantity> others = further_quantities(trainings_);
    const QSignalBlocker quiet(quantities_);
    quantities_->clear();
    for (const TrainingQuantity& quantity : others) {
        const QString title = QString::fromStdString(quantity.title.empty() ? quantity.name : quantity.title);
        quantities_->addItem(
            quantity.axis.empty() ? title : tr("%1 by %2").arg(title, QString::fromStdString(quantity.axis)),
            QString::fromStdString(quantity.name));
        quantities_->setItemData(quantities_->count() - 1,
                                 plain_tip(QString::fromStdString(quantity.description)), Qt::ToolTipRole);
    }
    const int before = quantities_->findData(chosen);
    quantities_->setCurrentIndex(before >= 0 ? before : quantities_->count() > 0 ? 0 : -1);
}

void TrainingView::showCharts() {
    const TrainingChartOptions options{static_cast<TrainingAxis>(axis_->currentData().toInt()),
                                       weight_of(smoothing_->value())};
    smoothing_->setToolTip(
        smoothing_->value() == 0
            ? tr("As measured. To the right: a running mean; what was measured stays faintly behind it. "
                 "Held-out text is never smoothed.")
            : tr("A running mean over about %1 points").arg(std::lround(1 / (1 - options.smoothing))));
    for (const Place place : {loss, steps, further}) {
        const std::string what = place == loss    ? training_quantity::loss
                                 : place == steps ? training_quantity::mean_steps
                                                  : quantities_->currentData().toString().toStdString();
        TrainingChart made = training_chart(trainings_, what, options);
        // A low panel has no room for what the choosers say already.
        made.chart.title = place == further ? QString() : made.chart.y.label;
        made.chart.y.label.clear();
        for (auto& series : made.chart.series) {
            if (trainings_.size() > 1) {
                series.name.clear(); // one legend is enough for all charts
            }
        }
        if (options.axis != TrainingAxis::seconds) {
            made.chart.x.label.clear();
        }
        sources_[place] = std::move(made.sources);
        if (made.chart.empty()) {
            charts_[place]->setHint(place == steps ? tr("This model takes no steps of pondering.")
                                                   : tr("Nothing of this was written yet."));
        } else {
            charts_[place]->setChart(std::move(made.chart));
        }
    }
    showLegend();
    readout_->say(standing());
}

/// Of several trainings; a single one needs none.
void TrainingView::showLegend() {
    legend_->setVisible(trainings_.size() > 1);
    const Palette& colours = context_.theme.colours();
    const std::vector<QColor>& others = Theme::runColours(context_.theme.dark());
    QStringList names;
    for (std::size_t i = 0; i < trainings_.size(); ++i) {
        // The charts' own order: as A, as B, as further runs.
        const QColor colour = i == 0 ? colours.a : i == 1 ? colours.b : others[(i - 2) % others.size()];
        names << QStringLiteral("<span style='color:%1'>━</span>&nbsp;%2")
                     .arg(colour.name(), QString::fromStdString(trainings_[i].info.name)
                                             .toHtmlEscaped()
                                             .replace(u' ', QChar::Nbsp));
    }
    names << tr("dashed: held-out text");
    if (found_ > trainings_.size()) {
        names << tr("the last %1 of %2 trainings").arg(trainings_.size()).arg(found_);
    }
    legend_->setText(names.join(QStringLiteral(" &nbsp; ")));
}

/// What is said while nothing is pointed at: where the trainings stand.
QString TrainingView::standing() const {
    if (trainings_.empty()) {
        return {};
    }
    const TrainingInfo& last = trainings_.back().info;
    const bool several = trainings_.size() > 1;
    if (!last.fault.empty()) {
        return QString::fromStdString(last.fault);
    }
    const QString moment = describe_moment(trainings_.back(), last.step, several);
    return last.complete ? moment
                         : tr("%1 · %2 % of the plan")
                               .arg(moment)
                               .arg(last.planned_steps > 0 ? 100 * last.step / last.planned_steps : 0);
}

void TrainingView::showReadout(Place place, int series, int index) {
    const auto s = static_cast<std::size_t>(series);
    const auto i = static_cast<std::size_t>(index);
    const auto& sources = sources_[place];
    if (series < 0 || index < 0 || s >= sources.size() || i >= sources[s].steps.size() ||
        sources[s].training >= trainings_.size()) {
        readout_->say(standing());
        return;
    }
    readout_->say(
        describe_moment(trainings_[sources[s].training], sources[s].steps[i], trainings_.size() > 1));
}

void TrainingView::choose(Place place, int series, int index) {
    const auto s = static_cast<std::size_t>(series);
    const auto i = static_cast<std::size_t>(index);
    const auto& sources = sources_[place];
    if (s >= sources.size() || i >= sources[s].steps.size() || sources[s].training >= trainings_.size()) {
        return;
    }
    const TrainingRecord& training = trainings_[sources[s].training];
    const std::int64_t run = training.snapshot_at(sources[s].steps[i]);
    if (run == 0) {
        return;
    }
    const RunKey key{path_text(training.trace), run};
    if (QGuiApplication::keyboardModifiers().testFlag(Qt::ControlModifier)) {
        context_.selection.setRunB(key);
    } else {
        context_.selection.setRunA(key);
    }
}

ViewCommand TrainingView::viewCommand() const {
    if (trainings_.empty()) {
        return no_command(tr("No training is shown."));
    }
    figure::FigureSpec page;
    page.kind = figure::FigureKind::panels;
    page.width_mm = figure::double_column_mm;
    const auto axis = static_cast<TrainingAxis>(axis_->currentData().toInt());
    for (const Place place : {loss, steps, further}) {
        if (charts_[place]->chart().empty()) {
            continue;
        }
        figure::FigureSpec panel;
        panel.kind = figure::FigureKind::training_curves;
        for (const TrainingRecord& training : trainings_) {
            const bool odd = training.info.name.empty() || training.info.name.find('#') != std::string::npos;
            panel.runs.push_back(
                {training.trace, odd ? std::to_string(training.info.id) : training.info.name});
        }
        panel.curve = place == loss    ? training_quantity::loss
                      : place == steps ? training_quantity::mean_steps
                                       : quantities_->currentData().toString().toStdString();
        panel.axis = axis == TrainingAxis::tokens    ? "tokens"
                     : axis == TrainingAxis::seconds ? "seconds"
                                                     : "steps";
        panel.smoothing = weight_of(smoothing_->value());
        page.panels.push_back(std::move(panel));
    }
    if (page.panels.empty()) {
        return no_command(tr("No training is shown."));
    }
    page.runs = page.panels.front().runs;
    return {ViewCommand::Kind::shell, figure::figure_command(page, QStringLiteral("training.pdf"))};
}

} // namespace ponderscope
