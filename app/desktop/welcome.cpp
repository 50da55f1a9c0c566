// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/welcome.h"

#include "app/desktop/panel_help.h"
#include "views/common/format.h"
#include "views/common/theme.h"

#include <QDir>
#include <QFileInfo>
#include <QGridLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr int most_recent = 6;

/// A card to be clicked: a name in bold, below it what happens.
class Card : public QPushButton {
public:
    Card(QString name, QString detail, Theme& theme, QWidget* parent)
        : QPushButton(parent), name_(std::move(name)), detail_(std::move(detail)), theme_(theme) {
        setAccessibleName(name_);
        setAccessibleDescription(detail_);
        setToolTip(plain_tip(detail_));
        setCursor(Qt::PointingHandCursor);
        setMinimumHeight(theme_.scaled(54));
    }
    [[nodiscard]] QSize sizeHint() const override { return {300, theme_.scaled(54)}; }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        const Palette& colours = theme_.colours();
        painter.setPen(QPen(hasFocus() ? colours.a : colours.border, hasFocus() ? 2 : 1));
        painter.setBrush(underMouse() || isDown() ? colours.selected : colours.panel);
        painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 5, 5);
        const QRect room = rect().adjusted(14, 8, -14, -8);
        const auto line = [&](const QFont& font, const QColor& colour, const QString& text,
                              Qt::Alignment where) {
            painter.setFont(font);
            painter.setPen(colour);
            painter.drawText(room, static_cast<int>(where | Qt::AlignLeft),
                             QFontMetrics(font).elidedText(text, Qt::ElideMiddle, room.width()));
        };
        line(theme_.strong(), colours.text, name_, Qt::AlignTop);
        line(theme_.small(), colours.soft, detail_, Qt::AlignBottom);
    }

private:
    QString name_;
    QString detail_;
    Theme& theme_;
};

/// The dashed field that says where to drop things.
class DropField : public QLabel {
public:
    DropField(Theme& theme, QWidget* parent) : QLabel(parent), theme_(theme) {
        setAlignment(Qt::AlignCenter);
        setWordWrap(true);
        setMinimumHeight(96);
    }

protected:
    void paintEvent(QPaintEvent* event) override {
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        const bool on = property("over").toBool();
        painter.setPen(QPen(on ? theme_.colours().a : theme_.colours().border, on ? 2 : 1.5, Qt::DashLine));
        painter.setBrush(on ? theme_.colours().selected : theme_.colours().field);
        painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 8, 8);
        painter.end();
        QLabel::paintEvent(event);
    }

private:
    Theme& theme_;
};

void clear(QVBoxLayout* column) {
    while (QLayoutItem* item = column->takeAt(0)) {
        if (item->widget() != nullptr) {
            item->widget()->hide();
            item->widget()->deleteLater();
        }
        delete item;
    }
}

} // namespace

WelcomePage::WelcomePage(Theme& theme, QWidget* parent)
    : QWidget(parent),
      theme_(theme),
      title_(new QLabel(u"Ponderscope"_s, this)),
      lead_(new QLabel(
          u"Which words cost a model another step, its answer after each step, and whether the step helped."_s,
          this)),
      drop_(new DropField(theme, this)),
      samples_(new QVBoxLayout),
      recent_(new QVBoxLayout) {
    setObjectName(u"welcome"_s);
    setAccessibleName(u"Welcome"_s);
    setFocusPolicy(Qt::StrongFocus);
    lead_->setWordWrap(true);
    drop_->setText(u"Drop a trace (.ponder) or a checkpoint folder here"_s);

    const auto heading = [this](const QString& text) {
        auto* label = new QLabel(text.toUpper(), this);
        label->setAccessibleName(text);
        headings_ << label;
        return label;
    };
    auto* open = new QPushButton(u"Open a trace…"_s, this);
    auto* record = new QPushButton(u"Record Your Checkpoint…"_s, this);
    auto* think = new QPushButton(u"Think live…"_s, this);
    auto* first = new QPushButton(u"First Steps"_s, this);
    auto* close = new QPushButton(u"Show the Empty Window"_s, this);
    open->setToolTip(u"Choose traces (Ctrl+O)"_s);
    record->setToolTip(u"Run a checkpoint in Hugging Face layout over a text (Ctrl+R)"_s);
    think->setToolTip(u"Type a prompt and watch the model generate, token by token"_s);
    first->setToolTip(u"What to look at in the recorded samples"_s);
    close->setToolTip(u"The Help menu brings this page back"_s);
    auto* buttons = new QHBoxLayout;
    buttons->setSpacing(8);
    for (QPushButton* button : {open, record, think, first}) {
        buttons->addWidget(button);
    }
    buttons->addStretch(1);
    buttons->addWidget(close);

    samples_->setSpacing(8);
    recent_->setSpacing(8);
    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(28);
    grid->setVerticalSpacing(10);
    grid->addWidget(heading(u"Samples"_s), 0, 0);
    grid->addWidget(heading(u"Open again"_s), 0, 1);
    grid->addLayout(samples_, 1, 0, Qt::AlignTop);
    grid->addLayout(recent_, 1, 1, Qt::AlignTop);
    grid->setColumnStretch(0, 1);
    grid->setColumnStretch(1, 1);

    auto* inner = new QWidget;
    inner->setMaximumWidth(860);
    auto* column = new QVBoxLayout(inner);
    column->setContentsMargins(32, 40, 32, 32);
    column->setSpacing(12);
    column->addWidget(title_);
    column->addWidget(lead_);
    column->addSpacing(12);
    column->addWidget(drop_);
    column->addLayout(buttons);
    column->addSpacing(16);
    column->addLayout(grid);
    column->addStretch(1);
    auto* middle = new QWidget;
    auto* row = new QHBoxLayout(middle);
    row->setContentsMargins(0, 0, 0, 0);
    row->addStretch(1);
    row->addWidget(inner, 1000);
    row->addStretch(1);
    auto* scroll = new QScrollArea(this);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    scroll->setAccessibleName(u"Welcome"_s);
    scroll->setFocusPolicy(Qt::NoFocus);
    scroll->setWidget(middle);
    auto* whole = new QVBoxLayout(this);
    whole->setContentsMargins(0, 0, 0, 0);
    whole->addWidget(scroll);

    connect(open, &QPushButton::clicked, this, &WelcomePage::openRequested);
    connect(record, &QPushButton::clicked, this, &WelcomePage::recordRequested);
    connect(think, &QPushButton::clicked, this, &WelcomePage::thinkRequested);
    connect(first, &QPushButton::clicked, this,
            [first, &theme] { show_panel_help(*panel_help(u"First steps"_s), first, theme); });
    connect(close, &QPushButton::clicked, this, &WelcomePage::closed);
    connect(&theme, &Theme::changed, this, &WelcomePage::restyle);
    restyle();
    setRecent({});
    setSamples({});
}

void WelcomePage::restyle() {
    QFont big = theme_.headline();
    big.setPointSizeF(big.pointSizeF() * 30 / 24);
    title_->setFont(big);
    lead_->setFont(theme_.reading());
    drop_->setFont(theme_.body());
    for (QLabel* label : {lead_, drop_}) {
        label->setForegroundRole(QPalette::PlaceholderText);
    }
    for (QLabel* label : std::as_const(headings_)) {
        label->setFont(theme_.caps());
        label->setForegroundRole(QPalette::PlaceholderText);
    }
    update();
}

void WelcomePage::setSamples(const Samples& samples) {
    clear(samples_);
    if (!samples.recorded.isEmpty()) {
        auto* card = new Card(u"Recorded samples"_s,
                              u"the stories and a passage, with every step; opens at once"_s, theme_, this);
        card->setObjectName(u"recordedSample"_s);
        connect(card, &QPushButton::clicked, this, &WelcomePage::recordedChosen);
        samples_->addWidget(card);
    }
    if (!samples.models.empty() && !samples.text.isEmpty()) {
        auto* card = new Card(u"Record a Sample Model…"_s,
                              u"%1 small models, one a method; a few seconds"_s.arg(samples.models.size()),
                              theme_, this);
        card->setObjectName(u"sampleModels"_s);
        auto* menu = new QMenu(card);
        for (std::size_t i = 0; i < samples.models.size(); ++i) {
            menu->addAction(samples.models[i].name, this,
                            [this, i] { Q_EMIT sampleChosen(static_cast<int>(i)); });
        }
        card->setMenu(menu);
        samples_->addWidget(card);
    }
    if (samples_->count() == 0) {
        auto* none =
            new QLabel(u"This installation has no samples. Open a trace, or record a checkpoint."_s, this);
        none->setWordWrap(true);
        none->setForegroundRole(QPalette::PlaceholderText);
        samples_->addWidget(none);
    }
}

void WelcomePage::setRecent(const QStringList& paths) {
    clear(recent_);
    for (const QString& path : paths.mid(0, most_recent)) {
        const QFileInfo info(path);
        QString folder = info.absolutePath();
        if (folder.startsWith(QDir::homePath())) {
            folder = u'~' + folder.mid(QDir::homePath().size());
        }
        auto* card = new Card(info.fileName(), info.isDir() ? u"checkpoint in %1"_s.arg(folder) : folder,
                              theme_, this);
        connect(card, &QPushButton::clicked, this, [this, path] { Q_EMIT pathChosen(path); });
        recent_->addWidget(card);
    }
    if (recent_->count() == 0) {
        auto* none = new QLabel(u"Recently opened files appear here."_s, this);
        none->setForegroundRole(QPalette::PlaceholderText);
        recent_->addWidget(none);
    }
}

void WelcomePage::setDropHint(bool on) {
    drop_->setProperty("over", on);
    drop_->update();
}

void WelcomePage::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), theme_.colours().panel);
}

void WelcomePage::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape) {
        Q_EMIT closed();
        return;
    }
    QWidget::keyPressEvent(event);
}

} // namespace ponderscope
