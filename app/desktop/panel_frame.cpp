// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/panel_frame.h"

#include "app/desktop/panel_help.h"
#include "views/common/controls.h"
#include "views/common/theme.h"

#include <QDockWidget>
#include <QLabel>
#include <QPainter>
#include <QResizeEvent>
#include <QScrollArea>
#include <QToolButton>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr int lowest_with_caveat = 230; ///< pixels
constexpr int room_of_buttons = 120;    ///< pixels

} // namespace

PanelFrame::PanelFrame(QWidget* panel, const QString& caveat, Theme& theme)
    : panel_(panel), caveat_(soft_label(this, caveat)) {
    // A fixed minimum: a minimum from the contents would resize panels with every change of run.
    setMinimumSize(200, 110);
    QWidget* shown = panel;
    if (qobject_cast<QAbstractScrollArea*>(panel) == nullptr) {
        auto* scroll = new QScrollArea(this);
        scroll->setFrameShape(QFrame::NoFrame);
        scroll->setWidgetResizable(true);
        scroll->setWidget(panel);
        scroll->setFocusPolicy(Qt::NoFocus);
        // The theme's background shows through.
        scroll->viewport()->setAutoFillBackground(false);
        panel->setAutoFillBackground(false);
        shown = scroll;
    }
    caveat_->setContentsMargins(14, 4, 14, 5);
    caveat_->hide();
    make_column(this, {}, 0, {{shown, 1}, caveat_});
    theme.dress(this, [this, &theme] { caveat_->setFont(theme.small()); });
}

void PanelFrame::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    caveat_->setVisible(!caveat_->text().isEmpty() && event->size().height() >= lowest_with_caveat);
}

QWidget* panel_of(const QDockWidget& dock) {
    const auto* frame = qobject_cast<PanelFrame*>(dock.widget());
    return frame == nullptr ? dock.widget() : frame->panel();
}

DockTitle::DockTitle(QDockWidget* dock, const PanelHelp& help, const QString& heading, Theme& theme)
    : QWidget(dock), heading_(heading), theme_(theme) {
    setAccessibleName(u"Title of %1"_s.arg(dock->windowTitle()));
    setFocusPolicy(Qt::NoFocus);
    setToolTip(u"Drag to move the panel; double-click to float it"_s);
    QBoxLayout* row = make_row(this, {0, 0, 6, 0}, 0, {});
    row->addStretch(1);
    const auto button = [&](const QString& sign, const QString& tip, auto* receiver, auto slot) {
        QToolButton* made = flat_button(sign, tip, this);
        made->setAccessibleName(u"%1: %2"_s.arg(dock->windowTitle(), tip));
        made->setFocusPolicy(Qt::TabFocus);
        made->setFixedSize(22, 20);
        made->setFont(theme.small());
        theme.dress(made, [made, &theme] {
            QPalette quiet = made->palette();
            quiet.setColor(QPalette::ButtonText, theme.colours().soft);
            made->setPalette(quiet);
        });
        connect(made, &QToolButton::clicked, receiver, slot);
        row->addWidget(made);
    };
    button(u"?"_s, u"Help on the panel (F1): %1"_s.arg(help.brief), this,
           [this, &help] { show_panel_help(help, this, theme_); });
    button(u"$"_s, u"Copy as Command"_s, this, &DockTitle::copyRequested);
    button(u"⤢"_s, u"Maximize or Restore Panel"_s, this, &DockTitle::maximiseRequested);
    button(u"❐"_s, u"Float or Dock Panel"_s, dock, [dock] { dock->setFloating(!dock->isFloating()); });
    button(u"×"_s, u"Close Panel (View → Panels reopens the panel)"_s, dock, &QDockWidget::close);
    connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void DockTitle::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), theme_.colours().panel);
    painter.setFont(theme_.strong());
    painter.setPen(theme_.colours().text);
    const QRect room = rect().adjusted(14, 0, -room_of_buttons, 0);
    painter.drawText(room, Qt::AlignLeft | Qt::AlignVCenter,
                     QFontMetrics(theme_.strong()).elidedText(heading_, Qt::ElideRight, room.width()));
}

} // namespace ponderscope
