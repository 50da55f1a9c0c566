// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/text_panel.h"

#include "views/text/find_bar.h"
#include "views/text/legend.h"
#include "views/text/text_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>

namespace ponderscope {

namespace {

constexpr int replayed = -1; ///< data of the entry that stands for a replay's steps

} // namespace

TextPanel::TextPanel(const ViewContext& context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      view_(new TextView(context, this)),
      find_(new FindBar(context, *view_, this)),
      legend_(new Legend(context.theme, this)),
      colour_(new QComboBox(this)),
      bars_(new QComboBox(this)),
      difference_(new QCheckBox(tr("A − B"), this)),
      controls_(new QWidget(this)) {
    const auto label = [this](const QString& text, QWidget* buddy) {
        auto* made = new QLabel(text, controls_);
        made->setForegroundRole(QPalette::PlaceholderText);
        made->setBuddy(buddy);
        return made;
    };
    for (const Quantity quantity : all_quantities) {
        colour_->addItem(quantity_name(quantity), static_cast<int>(quantity));
        colour_->setItemData(colour_->count() - 1, quantity_meaning(quantity, Attribution::predicted),
                             Qt::ToolTipRole);
    }
    colour_->setAccessibleName(tr("Colour of the text"));
    colour_->setToolTip(tr("What colours the text"));
    bars_->addItem(tr("Steps"), true);
    bars_->addItem(tr("None"), false);
    bars_->setAccessibleName(tr("Bars under the text"));
    bars_->setToolTip(tr("Ticks under each token: steps that ran, of the steps that could"));
    difference_->setToolTip(tr("Colour by the difference of runs A and B on the same tokens"));

    auto* row = new QHBoxLayout(controls_);
    row->setContentsMargins(16, 6, 8, 6);
    row->setSpacing(8);
    row->addWidget(label(tr("Colour"), colour_));
    row->addWidget(colour_);
    row->addSpacing(6);
    row->addWidget(label(tr("Bars"), bars_));
    row->addWidget(bars_);
    row->addSpacing(8);
    row->addWidget(difference_);
    row->addSpacing(4);
    row->addWidget(legend_, 1);
    auto* help = new QToolButton(controls_);
    help->setText(QStringLiteral("?"));
    help->setToolTip(tr("What the text shows, and what must not be concluded (F1)"));
    help->setAccessibleName(tr("Help on the text"));
    help->setAutoRaise(true);
    connect(help, &QToolButton::clicked, this, &TextPanel::helpRequested);
    row->addWidget(help);
    controls_->setFixedHeight(46);

    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(controls_);
    column->addWidget(find_);
    column->addWidget(view_, 1);
    setFocusProxy(view_);

    connect(colour_, &QComboBox::currentIndexChanged, this, [this] {
        if (const int chosen = colour_->currentData().toInt(); chosen != replayed) {
            const bool dismissed = view_->showsReplay();
            view_->setQuantity(static_cast<Quantity>(chosen));
            if (dismissed) {
                view_->setReplay({});
                emit replayDismissed();
            }
        }
    });
    connect(bars_, &QComboBox::currentIndexChanged, this,
            [this] { view_->setShowSteps(bars_->currentData().toBool()); });
    connect(difference_, &QCheckBox::toggled, view_, &TextView::setShowDifference);
    connect(view_, &TextView::valuesChanged, this, [this] {
        legend_->show(view_->values());
        nameColour();
    });
    connect(&context_.theme, &Theme::changed, this, qOverload<>(&QWidget::update));
    legend_->show(view_->values());
}

void TextPanel::nameColour() {
    const QSignalBlocker quiet(colour_);
    const int entry = colour_->findData(replayed);
    difference_->setEnabled(view_->values().replay.isEmpty());
    if (view_->values().replay.isEmpty()) {
        if (entry >= 0) {
            colour_->removeItem(entry);
            colour_->setCurrentIndex(colour_->findData(static_cast<int>(view_->quantity())));
        }
        return;
    }
    if (entry < 0) {
        colour_->addItem(tr("Steps (replay)"), replayed);
    }
    const int place = colour_->findData(replayed);
    colour_->setItemData(place, tr("Steps that %1 would have given, by replay").arg(view_->values().replay),
                         Qt::ToolTipRole);
    colour_->setCurrentIndex(place);
}

void TextPanel::find() {
    find_->open();
}

void TextPanel::findText(const QString& query) {
    find_->open();
    find_->setQuery(query);
}

void TextPanel::findNext() {
    if (find_->isVisible()) {
        find_->next();
    } else {
        find_->open();
    }
}

void TextPanel::findPrevious() {
    if (find_->isVisible()) {
        find_->previous();
    } else {
        find_->open();
    }
}

void TextPanel::setDifference(bool on) {
    difference_->setChecked(on);
}

void TextPanel::setQuantity(Quantity quantity) {
    colour_->setCurrentIndex(colour_->findData(static_cast<int>(quantity)));
}

void TextPanel::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), context_.theme.colours().panel);
    painter.fillRect(0, controls_->geometry().bottom(), width(), 1, context_.theme.colours().line);
}

} // namespace ponderscope
