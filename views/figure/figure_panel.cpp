// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/figure_panel.h"

#include "core/base/error.h"
#include "core/trace/records.h"
#include "views/chart/chart_plot.h"
#include "views/common/paths.h"
#include "views/common/same_runs.h"
#include "views/figure/figure_command.h"
#include "views/figure/figure_form.h"
#include "views/figure/preview.h"

#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QScrollArea>
#include <QScrollBar>
#include <QVBoxLayout>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

using namespace figure;

namespace {

constexpr int panel_form_width = 236;
constexpr int grown_ms = 1000; ///< between two figures of runs that grow

/// Whether each chart of a page has its own value of the field.
bool is_own(const FieldForm& field) {
    return field.key == "curve" || field.key == "signal" || field.key == "by";
}

/// Keys of numbers and axes; paper has further looks.
bool is_of_window(const FieldForm& field) {
    return !field.look || field.key == "x_range" || field.key == "y_range";
}

} // namespace

FigureSpec training_page() {
    FigureSpec page;
    page.kind = FigureKind::panels;
    page.columns = 3;
    page.width_mm = double_column_mm;
    for (const char* curve :
         {training_quantity::loss, training_quantity::mean_steps, training_quantity::gradient_norm}) {
        FigureSpec one;
        one.kind = FigureKind::training_curves;
        one.curve = curve;
        page.panels.push_back(std::move(one));
    }
    return page;
}

FigureSpec halting_page() {
    FigureSpec page;
    page.kind = FigureKind::panels;
    page.width_mm = double_column_mm;
    page.columns = 3;
    for (const FigureKind kind :
         {FigureKind::steps_histogram, FigureKind::nll_by_halt_step, FigureKind::steps_by_type}) {
        FigureSpec one;
        one.kind = kind;
        page.panels.push_back(std::move(one));
    }
    return page;
}

FigurePanel::FigurePanel(ViewContext context, FigureSpec spec, QWidget* parent)
    : QWidget(parent),
      context_(context),
      spec_(std::move(spec)),
      work_(this),
      body_(new QWidget(this)),
      notices_(new QLabel(this)),
      hint_(new QLabel(this)) {
    const bool page = spec_.kind == FigureKind::panels;
    const std::vector<FigureSpec> specs = partsOf(spec_);
    // Charts of one kind share their keys; those of several have only their own.
    const bool alike =
        std::ranges::all_of(specs, [&](const FigureSpec& part) { return part.kind == specs.front().kind; });
    form_ = new FigureForm(
        [page, alike](const FieldForm& field) {
            return alike && is_of_window(field) && !(page && is_own(field));
        },
        this);
    auto* scroll = new QScrollArea(body_);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setWidget(form_);
    scroll->setFocusPolicy(Qt::NoFocus);
    auto* charts = new QHBoxLayout;
    charts->setSpacing(14);
    for (const FigureSpec& part : specs) {
        addCell(*charts, part, page);
    }
    auto* row = new QHBoxLayout(body_);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(14);
    row->addLayout(charts, 1);
    row->addWidget(scroll);
    notices_->setWordWrap(true);
    notices_->setTextFormat(Qt::PlainText);
    notices_->setForegroundRole(QPalette::PlaceholderText);
    notices_->setFont(context_.theme.small());
    hint_->setAlignment(Qt::AlignCenter);
    hint_->setWordWrap(true);
    hint_->setTextFormat(Qt::PlainText);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(14, 10, 14, 8);
    column->addWidget(body_, 1);
    column->addWidget(notices_);
    column->addWidget(hint_, 1);
    offerChoices(*form_);
    form_->setSpec(specs.front());
    scroll->setFixedWidth(std::max(panel_form_width, form_->minimumSizeHint().width() +
                                                         scroll->verticalScrollBar()->sizeHint().width()));
    scroll->setVisible(form_->rows()->rowCount() > 0);
    connect(form_, &FigureForm::changed, this, [this] {
        for (FigureSpec* part : parts(spec_)) {
            for (const FieldForm& field : field_forms(part->kind)) {
                if (form_->editor(
                        QString::fromLatin1(field.key.data(), static_cast<qsizetype>(field.key.size())))) {
                    set_field(*part, field.key, field_json(form_->spec(), field.key));
                }
            }
        }
        changed();
    });
    pending_.setSingleShot(true);
    connect(&pending_, &QTimer::timeout, this, [this] { changed(); });
    follow(*this, context_, Follows::all);
    connect(&context_.selection, &Selection::attributionChanged, this, [this] { changed(); });
    connect(&context_.selection, &Selection::sequenceChanged, this, [this] { changed(); });
    renew();
}

FigurePanel::~FigurePanel() = default;

std::vector<FigureSpec> FigurePanel::partsOf(const FigureSpec& spec) {
    return spec.kind == FigureKind::panels ? spec.panels : std::vector<FigureSpec>{spec};
}

std::vector<FigureSpec*> FigurePanel::parts(FigureSpec& spec) {
    if (spec.kind != FigureKind::panels) {
        return {&spec};
    }
    std::vector<FigureSpec*> all;
    for (FigureSpec& panel : spec.panels) {
        all.push_back(&panel);
    }
    return all;
}

void FigurePanel::addCell(QHBoxLayout& row, const FigureSpec& spec, bool own) {
    const std::size_t place = cells_.size();
    Cell cell;
    auto* column = new QVBoxLayout;
    column->setSpacing(4);
    if (own) {
        cell.form = new FigureForm(is_own, body_);
        offerChoices(*cell.form);
        cell.form->setSpec(spec);
        column->addWidget(cell.form);
        connect(cell.form, &FigureForm::changed, this, [this, place] {
            FigureSpec& mine = *parts(spec_)[place];
            for (const char* key : {"curve", "signal", "by"}) {
                if (cells_[place].form->editor(QLatin1String(key)) != nullptr) {
                    set_field(mine, key, field_json(cells_[place].form->spec(), key));
                }
            }
            changed();
        });
    }
    cell.plot = new ChartPlot(context_.theme, body_);
    column->addWidget(cell.plot, 1);
    if (!is_chart(spec.kind)) {
        cell.page = new FigurePreview(body_);
        auto* area = new QScrollArea(body_);
        area->setAlignment(Qt::AlignCenter);
        area->setWidget(cell.page);
        area->setAccessibleName(u"Figure"_s);
        column->addWidget(area, 1);
    }
    connect(cell.plot, &ChartPlot::markClicked, this,
            [this, place](int series, int index) { choose(cells_[place], series, index); });
    row.addLayout(column, 1);
    cells_.push_back(std::move(cell));
}

void FigurePanel::offerChoices(FigureForm& form) const {
    form.setChoices(u"curve"_s, training_curve_choices());
}

std::vector<RunName> FigurePanel::runs() const {
    const FigureKind kind = partsOf(spec_).front().kind;
    std::vector<RunName> found;
    const QStringList traces = context_.data.traces();
    if (kind == FigureKind::training_curves) {
        for (const QString& trace : traces) {
            for (const TrainingInfo& training : context_.data.trainings(trace)) {
                const bool odd = training.name.empty() || training.name.find('#') != std::string::npos;
                found.push_back({path_of(trace), odd ? std::to_string(training.id) : training.name});
            }
        }
        return found;
    }
    const RunInfo* a = context_.data.run(context_.selection.runA());
    if (a == nullptr || context_.data.isLive(context_.selection.runA().trace)) {
        return {};
    }
    found = window_figure(context_.data, context_.selection, kind).runs;
    // Rules of other runs, and runs that left a source out.
    if (kind != FigureKind::policy_front && kind != FigureKind::depth_ablation) {
        found.resize(std::min<std::size_t>(found.size(), info_of(kind).uses_b ? 2 : 1));
        return found;
    }
    for (const QString& trace : traces) {
        for (const RunInfo& run : context_.data.runs(trace)) {
            const RunName name{path_of(trace), run_name(run).toStdString()};
            if (same_text(run, *a) && run.complete && run.scored_tokens > 0 &&
                std::find(found.begin(), found.end(), name) == found.end()) {
                found.push_back(name);
            }
        }
    }
    return found;
}

FigureSpec FigurePanel::spec() const {
    FigureSpec wanted = spec_;
    wanted.runs = runs();
    for (FigureSpec* part : parts(wanted)) {
        part->runs = wanted.runs;
        part->attribution = context_.selection.attribution();
        if (part->kind == FigureKind::token_text || part->kind == FigureKind::step_heatmap) {
            part->sequence = std::max<qint64>(0, context_.selection.sequence());
        }
        if (part->kind != FigureKind::training_curves) {
            part->colours = window_colours(context_, wanted.runs);
        }
    }
    return wanted;
}

/// The inputs of the numbers besides the specification: how far its own runs and trainings have grown. Growth
/// of other runs must not restart the figure.
QString FigurePanel::stamp(const FigureSpec& wanted) const {
    const bool trains = partsOf(wanted).front().kind == FigureKind::training_curves;
    const auto is_in = [&](const QString& trace, const std::string& name, std::int64_t number) {
        return std::any_of(wanted.runs.begin(), wanted.runs.end(), [&](const RunName& one) {
            return one.trace == path_of(trace) && (one.run == name || one.run == std::to_string(number));
        });
    };
    QString text;
    const QStringList traces = context_.data.traces();
    for (const QString& trace : traces) {
        for (const RunInfo& run : context_.data.runs(trace)) {
            if (trains ? run.training != 0 : is_in(trace, run_name(run).toStdString(), run.id)) {
                text += run_stamp(run) + u'\n';
            }
        }
        if (!trains) {
            continue;
        }
        for (const TrainingInfo& training : context_.data.trainings(trace)) {
            text += u"%1 %2 %3 %4\n"_s.arg(training.step)
                        .arg(training.seconds, 0, 'g', 17)
                        .arg(training.complete)
                        .arg(training.fault.size());
        }
    }
    return text;
}

void FigurePanel::renew() {
    const FigureSpec wanted = spec();
    if (wanted.runs.empty()) {
        asked_.clear();
        work_.cancel();
        showHint(partsOf(spec_).front().kind == FigureKind::training_curves
                     ? u"No open trace has a training. Drop the folder of “ponderscope train RECIPE.json "
                       "-o FOLDER” on the window, during the training or after it."_s
                 : context_.data.isLive(context_.selection.runA().trace)
                     ? u"The model is generating. The figure appears when the run is recorded."_s
                     : u"Open a trace to see this figure of its run."_s);
        return;
    }
    const QString now = QString::fromStdString(write_figure_spec(wanted, std::filesystem::path("/nowhere")));
    const QString grown = stamp(wanted);
    if (now == asked_ && (grown == grown_ || work_.isBusy() || pending_.isActive())) {
        return; // what has grown meanwhile is read once this is shown
    }
    if (asked_.isEmpty()) {
        showHint(u"Reading…"_s);
    }
    asked_ = now;
    grown_ = grown;
    work_.start(
        [specs = partsOf(wanted)](const std::stop_token& stop) {
            std::vector<Gathered> all;
            GatherCache shared;
            for (const FigureSpec& spec : specs) {
                Gathered part{spec, {}, {}};
                try {
                    part.data = gather(spec, {}, stop, &shared);
                } catch (const InputError& error) { // one chart of a page that this run has nothing for
                    part.problem = QString::fromUtf8(error.what());
                }
                all.push_back(std::move(part));
            }
            return all;
        },
        [this](const std::vector<Gathered>& all) {
            showParts(all);
            pending_.start(grown_ms);
        },
        [this](const QString& sentence) {
            showHint(sentence);
            pending_.start(grown_ms);
        });
}

void FigurePanel::showHint(const QString& sentence) {
    hint_->setText(sentence);
    hint_->setVisible(!sentence.isEmpty());
    body_->setVisible(sentence.isEmpty());
    notices_->setVisible(sentence.isEmpty() && !notices_->text().isEmpty());
}

void FigurePanel::showProblem(Cell& cell, const QString& sentence) {
    if (cell.page != nullptr) {
        cell.page->setFigure(nullptr, nullptr);
    }
    cell.made.reset();
    cell.plot->show();
    cell.plot->setHint(sentence);
}

QString FigurePanel::problemOf(const Cell& cell) {
    return cell.made ? QString() : cell.plot->hint();
}

QString FigurePanel::hint() const {
    return hint_->isHidden() ? QString() : hint_->text();
}

void FigurePanel::showParts(const std::vector<Gathered>& all) {
    QStringList notices;
    named_.clear();
    for (std::size_t i = 0; i < cells_.size(); ++i) {
        for (const std::string& notice : all[i].data.notices) {
            notices << QString::fromStdString(notice);
        }
        if (all[i].problem.isEmpty()) {
            showCell(cells_[i], all[i].spec, all[i].data);
        } else {
            showProblem(cells_[i], all[i].problem);
        }
    }
    notices.removeDuplicates();
    notices_->setText(notices.join(u' '));
    showHint({});
}

void FigurePanel::showCell(Cell& cell, const FigureSpec& spec, const FigureData& gathered) {
    try {
        Figure made;
        if (gathered.chart) {
            Chart made_chart = *gathered.chart;
            dress_chart(made_chart, spec, made);
            if (cells_.size() == 1) {
                made_chart.title.clear(); // the panel's heading
            }
            // A legend that says what one before it says leaves its room to the chart.
            const bool said = std::ranges::all_of(
                made.entries, [&](const std::string& name) { return std::ranges::count(named_, name) > 0; });
            if (said) {
                made_chart.legend = Chart::Legend::none;
            }
            named_.insert(named_.end(), made.entries.begin(), made.entries.end());
            cell.plot->setRunColours(spec.colours);
            cell.plot->setChart(std::move(made_chart));
            return;
        }
        if (!fonts_) {
            fonts_ = std::make_unique<Fonts>(Fonts::load());
        }
        cell.made = std::make_unique<Figure>(compose(spec, gathered, *fonts_));
        cell.page->setFigure(cell.made.get(), fonts_.get());
        cell.plot->hide();
    } catch (const Error& error) {
        showProblem(cell, QString::fromUtf8(error.what()));
    }
}

void FigurePanel::choose(const Cell& cell, int series, int index) {
    const QString link = cell.plot->linkOf({series, index});
    if (link.isEmpty()) {
        return;
    }
    const qsizetype hash = link.lastIndexOf(u'#');
    if (link.startsWith(QLatin1String("run:"))) {
        const RunKey key{link.mid(4, hash - 4), link.mid(hash + 1).toLongLong()};
        if (QGuiApplication::keyboardModifiers().testFlag(Qt::ControlModifier)) {
            context_.selection.setRunB(key);
        } else {
            context_.selection.setRunA(key);
        }
    }
    Q_EMIT linkChosen(link);
}

ViewCommand FigurePanel::viewCommand() const {
    FigureSpec wanted = spec();
    if (wanted.runs.empty() || !hint().isEmpty()) {
        return no_command(hint_->text());
    }
    // Leave out charts that have a problem.
    for (std::size_t i = cells_.size(); i-- > 0;) {
        if (!problemOf(cells_[i]).isEmpty() && cells_.size() > 1) {
            wanted.panels.erase(wanted.panels.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    const QString problem = problemOf(cells_.front());
    if (!problem.isEmpty() && (cells_.size() == 1 || wanted.panels.empty())) {
        return no_command(problem);
    }
    return {ViewCommand::Kind::shell, figure_command(wanted)};
}

} // namespace ponderscope
