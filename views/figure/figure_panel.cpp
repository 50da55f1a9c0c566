// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/figure_panel.h"

#include "core/base/error.h"
#include "core/stats/bootstrap.h"
#include "core/trace/records.h"
#include "views/common/controls.h"
#include "views/common/paths.h"
#include "views/common/same_runs.h"
#include "views/figure/figure_command.h"
#include "views/figure/figure_form.h"
#include "views/figure/preview.h"

#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QScrollArea>
#include <QVBoxLayout>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

using namespace figure;

namespace {

constexpr int panel_form_width = 250;
constexpr int grown_ms = 1000; ///< delay between two figures of growing runs

/// Whether a key chooses the content of one chart. Its field is above the chart.
bool is_own(const FieldForm& field) {
    return field.key == "curve" || field.key == "signal" || field.key == "by" || field.key == "scatter";
}

/// Whether a key affects the numbers or axes. Other keys of the look matter only on paper.
bool is_shared(const FieldForm& field) {
    return !is_own(field) && (!field.look || field.key == "x_range" || field.key == "y_range");
}

/// "token:SEQUENCE#ROW" as (SEQUENCE, ROW).
std::pair<QString, qint64> parsed_link(const QString& link) {
    const qsizetype hash = link.lastIndexOf(u'#');
    const qsizetype begin = link.indexOf(u':') + 1;
    return {link.mid(begin, hash - begin), link.mid(hash + 1).toLongLong()};
}

std::vector<FigureSpec*> parts_of(FigureSpec& spec) {
    if (spec.kind != FigureKind::panels) {
        return {&spec};
    }
    std::vector<FigureSpec*> all;
    for (FigureSpec& panel : spec.panels) {
        all.push_back(&panel);
    }
    return all;
}

FigureKind kind_of(const FigureSpec& spec) {
    return spec.kind == FigureKind::panels ? spec.panels.front().kind : spec.kind;
}

/// Takes the keys that \p form edits.
void take_keys(FigureSpec& spec, const FigureForm& form) {
    for (const FieldForm& field : field_forms(spec.kind)) {
        if (form.editor(QString::fromUtf8(field.key)) != nullptr) {
            set_field(spec, field.key, field_json(form.spec(), field.key));
        }
    }
}

} // namespace

FigureSpec page_of(std::initializer_list<FigureKind> kinds) {
    FigureSpec page;
    page.kind = FigureKind::panels;
    page.columns = static_cast<std::int64_t>(kinds.size());
    page.width_mm = double_column_mm;
    for (const FigureKind kind : kinds) {
        page.panels.emplace_back().kind = kind;
    }
    return page;
}

FigureSpec training_page() {
    constexpr FigureKind curves = FigureKind::training_curves;
    FigureSpec page = page_of({curves, curves, curves});
    page.panels[1].curve = training_quantity::mean_steps;
    page.panels[2].curve = training_quantity::gradient_norm;
    return page;
}

FigureSpec figure_of(FigureKind kind) {
    FigureSpec spec;
    spec.kind = kind;
    return spec;
}

FigureSpec front_figure() {
    FigureSpec spec = figure_of(FigureKind::policy_front);
    spec.bands = true;
    spec.replicates = shown_replicates;
    return spec;
}

FigurePanel::FigurePanel(ViewContext context, FigureSpec spec, QWidget* parent)
    : QWidget(parent),
      context_(context),
      spec_(std::move(spec)),
      work_(this),
      body_(new QWidget(this)),
      notices_(soft_label(this)),
      hint_(new QLabel(this)) {
    const std::vector<FigureSpec*> parts = parts_of(spec_);
    // Charts of several kinds share no keys.
    const bool alike =
        std::ranges::all_of(parts, [&](const FigureSpec* part) { return part->kind == parts.front()->kind; });
    form_ = new FigureForm([alike](const FieldForm& field) { return alike && is_shared(field); }, this);
    static_cast<QFormLayout*>(form_->layout())->setVerticalSpacing(2);
    side_ = form_area(form_, this);
    side_->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Ignored); // the form scrolls, not the panel
    auto* charts = new QHBoxLayout;
    charts->setSpacing(14);
    for (const FigureSpec* part : parts) {
        addCell(*charts, *part);
    }
    make_row(body_, {}, 14, {{charts, 1}, side_});
    notices_->setFont(context_.theme.small());
    hint_->setAlignment(Qt::AlignCenter);
    hint_->setWordWrap(true);
    hint_->setTextFormat(Qt::PlainText);
    make_column(this, {14, 8, 14, 4}, 4, {{body_, 1}, notices_, {hint_, 1}});
    form_->setSpec(*parts.front());
    fit_form_area(*side_, panel_form_width);
    side_->setVisible(!form_->isEmpty());
    connect(form_, &FigureForm::changed, this, [this] {
        for (FigureSpec* part : parts_of(spec_)) {
            take_keys(*part, *form_);
        }
        changed();
    });
    pending_.setSingleShot(true);
    connect(&pending_, &QTimer::timeout, this, [this] { changed(); });
    follow(*this, context_, Follows::all);
    const Selection& selection = context_.selection;
    connect(&selection, &Selection::attributionChanged, this, [this] { changed(); });
    connect(&selection, &Selection::sequenceChanged, this, [this] { changed(); });
    connect(&selection, &Selection::hoverChanged, this, &FigurePanel::showTokens);
    connect(&selection, &Selection::tokenChanged, this, &FigurePanel::showTokens);
    renew();
}

FigurePanel::~FigurePanel() {
    for (const Cell& cell : cells_) {
        disconnect(cell.form, nullptr, this, nullptr); // closing fields would report a finished edit
    }
}

void FigurePanel::embed() {
    embedded_ = true;
    side_->hide();
    notices_->hide();
    layout()->setContentsMargins(0, 0, 0, 0);
}

void FigurePanel::followToken() {
    followsToken_ = true;
    const Selection& selection = context_.selection;
    connect(&selection, &Selection::hoverChanged, this, [this] { changed(); });
    connect(&selection, &Selection::tokenChanged, this, [this] { changed(); });
    connect(&selection, &Selection::depthChanged, this, &FigurePanel::showTokens);
    connect(&selection, &Selection::stepChanged, this, &FigurePanel::showTokens);
    changed();
}

void FigurePanel::setSpec(FigureSpec spec) {
    spec_ = std::move(spec);
    const std::vector<FigureSpec*> parts = parts_of(spec_);
    form_->setSpec(*parts.front());
    for (std::size_t i = 0; i < cells_.size(); ++i) {
        cells_[i].form->setSpec(*parts[i]);
    }
    changed();
}

void FigurePanel::addCell(QHBoxLayout& row, const FigureSpec& spec) {
    const std::size_t place = cells_.size();
    Cell cell;
    auto* column = new QVBoxLayout;
    column->setSpacing(4);
    cell.form = new FigureForm(is_own, body_);
    cell.form->setSpec(spec);
    cell.form->setVisible(!cell.form->isEmpty());
    column->addWidget(cell.form);
    connect(cell.form, &FigureForm::changed, this, [this, place] {
        take_keys(*parts_of(spec_)[place], *cells_[place].form);
        changed();
    });
    cell.plot = new ChartPlot(context_.theme, body_);
    column->addWidget(cell.plot, 1);
    if (!is_chart(spec.kind)) {
        cell.page = new FigurePreview(body_);
        auto* area = new QScrollArea(body_);
        area->setAlignment(Qt::AlignCenter);
        area->setWidget(cell.page);
        area->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Ignored);
        area->setAccessibleName(u"Figure"_s);
        column->addWidget(area, 1);
    }
    connect(cell.plot, &ChartPlot::markClicked, this, [this, plot = cell.plot](int series, int index) {
        choose(plot->linkOf({series, index}));
    });
    connect(cell.plot, &ChartPlot::markHovered, this, [this, place](int series, int index) {
        // Hovering shows only tokens of the current sequence. A click goes to another sequence.
        if (!cells_[place].tokens.isEmpty()) {
            const QString link = series < 0 ? QString() : cells_[place].plot->linkOf({series, index});
            const auto [sequence, token_row] = parsed_link(link);
            const bool here = sequence == QString::number(context_.selection.sequence());
            context_.selection.setHover(here ? context_.selection.tokenOf(token_row) : -1);
        }
    });
    row.addLayout(column, 1);
    cells_.push_back(std::move(cell));
}

std::vector<RunName> FigurePanel::runs() const {
    const FigureKind kind = kind_of(spec_);
    std::vector<RunName> found;
    const QStringList& traces = context_.data.traces();
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
    if (kind != FigureKind::policy_front) { // only fronts show other runs
        return found;
    }
    for (const QString& trace : traces) {
        for (const RunInfo& run : context_.data.runs(trace)) {
            const RunName name{path_of(trace), run_name(run).toStdString()};
            if (same_text(run, *a) && run.complete && run.scored_tokens > 0 &&
                std::ranges::find(found, name) == found.end()) {
                found.push_back(name);
            }
        }
    }
    return found;
}

FigureSpec FigurePanel::spec() const {
    FigureSpec wanted = spec_;
    wanted.runs = runs();
    for (FigureSpec* part : parts_of(wanted)) {
        part->runs = wanted.runs;
        if (part->kind != FigureKind::training_curves) {
            part->runs.resize(std::min(part->runs.size(), most_runs(*part)));
        }
        part->attribution = context_.selection.attribution();
        if (part->kind == FigureKind::token_text || part->kind == FigureKind::step_heatmap) {
            part->sequence = std::max<qint64>(0, context_.selection.sequence());
        }
        if (followsToken_) {
            part->sequence = context_.selection.sequence();
            part->tokens = {context_.selection.shown(), context_.selection.shown() + 1};
        }
        if (part->kind != FigureKind::training_curves) {
            part->colours = window_colours(context_, part->runs);
        }
    }
    return wanted;
}

/// The inputs of the numbers besides the specification: how far its own runs and trainings have grown. Growth
/// of other runs must not restart the figure.
QString FigurePanel::stamp(const FigureSpec& wanted) const {
    QString text;
    if (kind_of(wanted) != FigureKind::training_curves) {
        for (const RunName& name : wanted.runs) {
            if (const RunInfo* run = run_named(context_.data, name)) {
                text += run_stamp(*run) + u'\n';
            }
        }
        return text;
    }
    for (const QString& trace : context_.data.traces()) {
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
        showHint(kind_of(spec_) == FigureKind::training_curves
                     ? u"No training is open. Drop the output folder of “ponderscope train RECIPE.json "
                       "-o FOLDER” on the window, during or after the training."_s
                 : context_.data.isLive(context_.selection.runA().trace)
                     ? u"The model is generating. The figure appears after the run is recorded."_s
                     : u"Open a trace to see this figure of its run."_s);
        return;
    }
    const Selection& selection = context_.selection;
    if (followsToken_ && (selection.shown() < 0 || selection.rowOf(selection.shown()) < 0)) {
        asked_.clear();
        work_.cancel();
        showHint(u"Choose a word to see its numbers here."_s);
        return;
    }
    const QString now = QString::fromStdString(write_figure_spec(wanted, std::filesystem::path("/nowhere")));
    const QString grown = stamp(wanted);
    if (now == asked_ && (grown == grown_ || work_.isBusy() || pending_.isActive())) {
        return; // reads later growth after the current reading
    }
    if (asked_.isEmpty()) {
        showHint(u"Reading…"_s);
    }
    asked_ = now;
    grown_ = grown;
    work_.start(
        [specs = wanted.kind == FigureKind::panels ? wanted.panels
                                                   : std::vector{wanted}](const std::stop_token& stop) {
            std::vector<Gathered> all;
            GatherCache shared;
            for (const FigureSpec& spec : specs) {
                Gathered part{spec, {}, {}};
                try {
                    part.data = gather(spec, {}, stop, &shared);
                } catch (const InputError& error) { // the run lacks the data for one chart of the page
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

void FigurePanel::cancel() {
    setOnScreen(false);
    work_.cancel();
    asked_.clear();
    changed();
    showHint(u"Cancelled."_s);
}

void FigurePanel::showHint(const QString& sentence) {
    hint_->setText(sentence);
    hint_->setVisible(!sentence.isEmpty());
    body_->setVisible(sentence.isEmpty());
    notices_->setVisible(!embedded_ && sentence.isEmpty() && !notices_->text().isEmpty());
}

void FigurePanel::showProblem(Cell& cell, const QString& sentence) {
    if (cell.page != nullptr) {
        cell.page->setFigure(nullptr, nullptr);
    }
    cell.made.reset();
    cell.chart = {};
    cell.tokens.clear();
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
        for (const Notice& notice : all[i].data.notices) {
            notices << QString::fromStdString(notice.text);
        }
        if (all[i].problem.isEmpty()) {
            showCell(cells_[i], all[i].spec, all[i].data);
        } else {
            showProblem(cells_[i], all[i].problem);
        }
    }
    const auto works = [](const Cell& cell) { return problemOf(cell).isEmpty(); };
    const bool any = embedded_ && std::ranges::any_of(cells_, works);
    for (const Cell& cell : cells_) { // an embedded figure hides charts with problems if another chart works
        cell.plot->setVisible(!cell.made && (!any || works(cell)));
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
            const QString title = made_chart.title;
            if (cells_.size() == 1) {
                made_chart.title.clear(); // shown as the panel's heading
            }
            // Hide a legend with only names that earlier legends show.
            const bool said = std::ranges::all_of(
                made.entries, [&](const std::string& name) { return std::ranges::count(named_, name) > 0; });
            if (said) {
                made_chart.legend = Chart::Legend::none;
            }
            named_.insert(named_.end(), made.entries.begin(), made.entries.end());
            cell.plot->setRunColours(spec.colours);
            cell.chart = std::move(made_chart);
            plot(cell);
            cell.plot->setAccessibleName(title);
            return;
        }
        if (!fonts_) {
            fonts_ = std::make_unique<Fonts>(Fonts::load());
        }
        cell.made = std::make_unique<Figure>(compose(spec, gathered, *fonts_));
        cell.page->setFigure(cell.made.get(), fonts_.get());
    } catch (const Error& error) {
        showProblem(cell, QString::fromUtf8(error.what()));
    }
}

void FigurePanel::plot(Cell& cell) {
    Chart chart = cell.chart;
    if (decorate_) {
        decorate_(chart);
    }
    cell.tokens.clear();
    cell.layers.clear();
    for (std::size_t s = 0; s < chart.series.size(); ++s) {
        const std::vector<QString>& links = chart.series[s].links;
        for (std::size_t i = 0; i < links.size() && links[i].startsWith(u"token:"); ++i) {
            cell.tokens.insert(links[i], {static_cast<int>(s), static_cast<int>(i)});
        }
        for (std::size_t i = 0; i < links.size() && links[i].startsWith(u"layer:"); ++i) {
            cell.layers.insert(links[i], {static_cast<int>(s), static_cast<int>(i)});
        }
    }
    cell.plot->setChart(std::move(chart));
    showTokens();
}

void FigurePanel::decorate(std::function<void(Chart&)> change) {
    decorate_ = std::move(change);
    for (Cell& cell : cells_) {
        if (!cell.chart.empty()) {
            plot(cell);
        }
    }
}

void FigurePanel::showTokens() {
    const Selection& selection = context_.selection;
    for (const Cell& cell : cells_) {
        const auto mark = [&](qint64 token) {
            return token < 0 ? ChartPlot::Mark()
                             : cell.tokens.value(token_link(selection.sequence(), selection.rowOf(token)));
        };
        if (!cell.tokens.isEmpty() && onScreen()) {
            if (selection.hover() >= 0) {
                cell.plot->setHovered(mark(selection.hover()));
            }
            cell.plot->setSelected(mark(selection.token()));
        }
        if (!cell.layers.isEmpty()) {
            cell.plot->setSelected(cell.layers.value(layer_link(selection.layer(), selection.step())));
        }
    }
}

void FigurePanel::choose(const QString& link) {
    if (link.startsWith(u"token:")) {
        const auto [sequence, row] = parsed_link(link);
        context_.selection.setSequence(sequence.toLongLong());
        context_.selection.setToken(context_.selection.tokenOf(row));
    }
    if (link.startsWith(u"layer:")) {
        const auto [layer, step] = parsed_link(link);
        context_.selection.setLayer(layer.toInt());
        context_.selection.setStep(static_cast<int>(step));
    }
    if (!link.isEmpty()) {
        Q_EMIT linkChosen(link);
    }
}

ViewCommand FigurePanel::viewCommand() const {
    FigureSpec wanted = spec();
    if (wanted.runs.empty() || !hint().isEmpty()) {
        return no_command(hint_->text());
    }
    // Omit charts that have a problem.
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
