// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/heatmap_view.h"

#include "core/base/error.h"
#include "views/common/format.h"
#include "views/heatmap/step_map_canvas.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include <algorithm>

namespace ponderscope {
namespace {

bool by_step(const SignalInfo& info) {
    return info.axes.size() == 2 && info.axes[0] == "token" && info.axes[1] == "step";
}

QString title_of(const SignalInfo& info) {
    return QString::fromStdString(info.title.empty() ? info.name : info.title);
}

QString number_at_end(double value) {
    return QString::number(value, 'g', 4).replace(u'-', QChar(0x2212));
}

} // namespace

HeatmapView::HeatmapView(ViewContext context, QWidget* parent)
    : QWidget(parent),
      data_(context.data),
      selection_(context.selection),
      theme_(context.theme),
      chooser_(new QComboBox(this)),
      merge_(new QComboBox(this)),
      readout_(new QLabel(this)),
      scale_(new ScaleBar(context.theme, this)),
      canvas_(new StepMapCanvas(context, this)) {
    chooser_->setAccessibleName(tr("Signal"));
    chooser_->setToolTip(tr("Which per-step signal the heatmap shows"));
    chooser_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    merge_->setAccessibleName(tr("Tokens in one pixel"));
    merge_->setToolTip(tr("What stands for the tokens that share one pixel column"));
    merge_->addItem(tr("largest"));
    merge_->addItem(tr("mean"));
    merge_->hide();
    readout_->setTextFormat(Qt::PlainText);
    readout_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    readout_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);

    auto* header = new QHBoxLayout;
    header->setSpacing(12);
    header->addWidget(chooser_);
    header->addWidget(scale_);
    header->addWidget(merge_);
    header->addWidget(readout_, 1);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(14, 8, 14, 6);
    layout->setSpacing(8);
    layout->addLayout(header);
    layout->addWidget(canvas_, 1);

    const auto dress = [this] {
        QPalette palette = readout_->palette();
        palette.setColor(QPalette::WindowText, theme_.colours().soft);
        readout_->setPalette(palette);
        readout_->setFont(theme_.small());
        chooser_->setFont(theme_.strong());
        merge_->setFont(theme_.small());
    };
    dress();
    connect(&theme_, &Theme::changed, this, dress);
    connect(chooser_, &QComboBox::activated, this,
            [this](int index) { setSignalName(chooser_->itemData(index).toString()); });
    connect(merge_, &QComboBox::activated, this, [this](int index) {
        canvas_->setMerge(index == 0 ? StepMap::Merge::largest : StepMap::Merge::mean);
    });
    connect(canvas_, &StepMapCanvas::cellHovered, this, &HeatmapView::showCell);
    connect(canvas_, &StepMapCanvas::viewChanged, this,
            [this] { merge_->setVisible(canvas_->map() && canvas_->tokensPerPixel() > 1); });

    connect(&selection_, &Selection::runsChanged, this, &HeatmapView::refreshSignals);
    connect(&selection_, &Selection::sequenceChanged, this, &HeatmapView::refreshMap);
    connect(&selection_, &Selection::attributionChanged, this, &HeatmapView::refreshMap);
    connect(&data_, &TraceData::traceOpened, this, &HeatmapView::refreshSignals);
    connect(&data_, &TraceData::traceChanged, this, &HeatmapView::refreshSignals);
    connect(&data_, &TraceData::traceClosed, this, &HeatmapView::refreshSignals);
    connect(&data_, &TraceData::sequenceReady, this, [this](const RunKey& run, qint64 sequence) {
        if (run == selection_.runA() && sequence == selection_.sequence()) {
            refreshMap();
        }
    });
    connect(&data_, &TraceData::signalReady, this,
            [this](const RunKey& run, qint64 sequence, const QString& name) {
                if (run == selection_.runA() && sequence == selection_.sequence() && name == signal_) {
                    unreadable_ = data_.signal(run, sequence, name) ? QString() : name;
                    refreshMap();
                }
            });
    refreshSignals();
}

void HeatmapView::setSignalName(const QString& name) {
    if (name == signal_) {
        return;
    }
    signal_ = name;
    refreshSignals();
    emit signalNameChanged(signal_);
}

QString HeatmapView::readout() const {
    return readout_->text();
}

void HeatmapView::refreshSignals() {
    std::vector<SignalInfo> infos = data_.signalsOf(selection_.runA());
    std::erase_if(infos, [](const SignalInfo& info) { return !by_step(info); });
    QString chosen = signal_;
    if (!infos.empty() && std::none_of(infos.begin(), infos.end(), [&](const SignalInfo& info) {
            return info.name == chosen.toStdString();
        })) {
        // What a method decides by says most; then what it achieved.
        chosen = QString::fromStdString(infos.front().name);
        for (const char* preferred : {signal::nll, signal::halting_mass, signal::gate}) {
            if (std::any_of(infos.begin(), infos.end(),
                            [&](const SignalInfo& info) { return info.name == preferred; })) {
                chosen = QLatin1String(preferred);
            }
        }
    }
    {
        const QSignalBlocker quiet(chooser_);
        chooser_->clear();
        for (const SignalInfo& info : infos) {
            const QString name = QString::fromStdString(info.name);
            chooser_->addItem(title_of(info), name);
            chooser_->setItemData(chooser_->count() - 1, QString::fromStdString(info.description),
                                  Qt::ToolTipRole);
        }
        chooser_->setCurrentIndex(chooser_->findData(chosen));
        chooser_->setVisible(!infos.empty());
    }
    if (!infos.empty()) {
        signal_ = chosen;
    }
    refreshMap();
}

void HeatmapView::refreshMap() {
    const RunKey run = selection_.runA();
    const auto nothing = [this](const QString& hint) {
        sequence_.reset();
        chunk_.reset();
        canvas_->setHint(hint);
        canvas_->setMap(nullptr);
        scale_->clear();
        readout_->clear();
        merge_->hide();
    };
    if (!run.isValid()) {
        nothing(tr("Open a trace or choose a run in the library to see its steps."));
        return;
    }
    if (chooser_->count() == 0) {
        nothing(tr("This run has no signals by step. Record it again with “steps” as what is recorded."));
        return;
    }
    const auto sequence = data_.sequence(run, selection_.sequence());
    const auto chunk = data_.signal(run, selection_.sequence(), signal_);
    if (!sequence || !chunk) {
        // What is shown of this very sequence may stay until more of it has been read; anything else would be
        // wrong.
        const bool stale = !sequence_ || !(sequence_->run == run) ||
                           sequence_->sequence != selection_.sequence() || !canvas_->map() ||
                           canvas_->map()->info().name != signal_.toStdString();
        if (stale) {
            nothing(unreadable_ == signal_ ? tr("This signal could not be read from the trace.")
                                           : tr("Reading…"));
        }
        return;
    }
    if (sequence == sequence_ && chunk == chunk_ && attribution_ == selection_.attribution() &&
        canvas_->map() && canvas_->map()->info().name == signal_.toStdString()) {
        return;
    }
    SignalInfo info;
    for (const SignalInfo& candidate : data_.signalsOf(run)) {
        if (candidate.name == signal_.toStdString()) {
            info = candidate;
        }
    }
    try {
        auto map = std::make_shared<const StepMap>(*sequence, *chunk, info, selection_.attribution());
        sequence_ = sequence;
        chunk_ = chunk;
        attribution_ = selection_.attribution();
        scale_->setScale(map->scale(), QString::fromStdString(info.unit), map->hasHalted());
        canvas_->setHint(tr("This sequence has no tokens yet."));
        canvas_->setMap(std::move(map));
    } catch (const Error& error) {
        nothing(QString::fromUtf8(error.what()));
    }
}

void HeatmapView::showCell(qint64 token, int step) {
    if (token < 0 || step < 0 || !canvas_->map() || !sequence_) {
        readout_->clear();
        return;
    }
    const StepMap& map = *canvas_->map();
    const StepMap::Cell cell = map.at(token, step);
    const QString name =
        visible_token(token_bytes(sequence_->tokens, sequence_->text, static_cast<std::size_t>(token)), 24);
    QString value = tr("no value");
    if (cell.kind == StepMap::Kind::halted) {
        value = tr("halted");
    } else if (cell.kind == StepMap::Kind::value) {
        const QString unit = QString::fromStdString(map.info().unit);
        value = QString::number(cell.value, 'g', 4).replace(u'-', QChar(0x2212)) +
                (unit.isEmpty() || unit == u"probability" ? QString() : u' ' + unit);
    }
    readout_->setText(tr("token %1%2 · step %3 · %4")
                          .arg(QString::number(token),
                               name.isEmpty() ? QString() : QStringLiteral(" “%1”").arg(name),
                               QString::number(step), value));
}

ScaleBar::ScaleBar(Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    connect(&theme_, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void ScaleBar::setScale(const ColourScale& scale, const QString& unit, bool halted) {
    scale_ = scale;
    unit_ = unit;
    halted_ = halted;
    empty_ = false;
    setAccessibleName(
        tr("Scale from %1 to %2 %3").arg(number_at_end(scale.low), number_at_end(scale.high), unit));
    updateGeometry();
    update();
}

void ScaleBar::clear() {
    empty_ = true;
    updateGeometry();
    update();
}

QSize ScaleBar::sizeHint() const {
    if (empty_) {
        return {0, 20};
    }
    const QFontMetrics metrics(theme_.small());
    int width = metrics.horizontalAdvance(number_at_end(scale_.low)) + 6 + 96 + 6 +
                metrics.horizontalAdvance(number_at_end(scale_.high) + u' ' + unit_);
    if (halted_) {
        width += 14 + 12 + 6 + metrics.horizontalAdvance(tr("halted"));
    }
    return {width + 4, 20};
}

void ScaleBar::paintEvent(QPaintEvent*) {
    if (empty_) {
        return;
    }
    QPainter painter(this);
    painter.setFont(theme_.small());
    painter.setPen(theme_.colours().soft);
    const QFontMetrics metrics(theme_.small());
    int x = 0;
    const auto write = [&](const QString& text) {
        const int wide = metrics.horizontalAdvance(text);
        painter.drawText(QRect(x, 0, wide + 2, height()), Qt::AlignLeft | Qt::AlignVCenter, text);
        x += wide + 6;
    };
    write(number_at_end(scale_.low));
    const QRect bar(x, height() / 2 - 5, 96, 10);
    for (int i = 0; i < bar.width(); ++i) {
        painter.fillRect(bar.left() + i, bar.top(), 1, bar.height(),
                         QColor(theme_.magnitudeMap().at((i + 0.5) / bar.width())));
    }
    x += bar.width() + 6;
    write(unit_.isEmpty() || unit_ == u"probability" ? number_at_end(scale_.high)
                                                     : number_at_end(scale_.high) + u' ' + unit_);
    if (halted_) {
        x += 8;
        painter.fillRect(QRect(x, height() / 2 - 5, 12, 10), theme_.colours().halted);
        x += 18;
        write(tr("halted"));
    }
}

} // namespace ponderscope
