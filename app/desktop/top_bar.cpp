// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/top_bar.h"

#include "views/common/controls.h"
#include "views/common/tables.h"

#include <QAbstractItemView>
#include <QComboBox>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QMenuBar>
#include <QPainter>
#include <QStylePainter>

#include <algorithm>
#include <vector>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// A letter on a filled square, sharp on every screen.
QIcon badge(const QString& letter, const QColor& fill, const QColor& text, const QFont& font) {
    QIcon icon;
    for (const int scale : {1, 2, 3}) {
        QPixmap pixmap(18 * scale, 18 * scale);
        pixmap.setDevicePixelRatio(scale);
        pixmap.fill(Qt::transparent);
        QPainter painter(&pixmap);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(fill);
        painter.drawRoundedRect(QRectF(1, 1, 16, 16), 3, 3);
        painter.setPen(text);
        painter.setFont(font);
        painter.drawText(QRectF(1, 1, 16, 16), Qt::AlignCenter, letter);
        painter.end();
        icon.addPixmap(pixmap);
    }
    return icon;
}

constexpr int name_role = Qt::UserRole + 1; ///< text of an entry in the closed box

/// A list of runs, each behind its colour; closed it wears the letter of its role. Names that begin alike
/// differ at their ends.
class RunBox : public QComboBox {
public:
    explicit RunBox(QWidget* parent) : QComboBox(parent) { setItemDelegate(dot_delegate(this, 6)); }
    void setBadge(const QIcon& icon) { badge_ = icon; }

protected:
    void paintEvent(QPaintEvent*) override {
        QStylePainter painter(this);
        QStyleOptionComboBox option;
        initStyleOption(&option);
        painter.drawComplexControl(QStyle::CC_ComboBox, option);
        option.currentIcon = badge_;
        option.iconSize = iconSize();
        constexpr int padding = 14; // of the label, and behind the icon
        const QRect field =
            style()->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, this);
        const QString name = currentData(name_role).toString();
        option.currentText =
            option.fontMetrics.elidedText(name.isEmpty() ? option.currentText : name, Qt::ElideMiddle,
                                          field.width() - iconSize().width() - padding);
        painter.drawControl(QStyle::CE_ComboBoxLabel, option);
    }

private:
    QIcon badge_;
};

/// The field that opens the find bar, by a click or Enter.
class FindField : public QLineEdit {
public:
    explicit FindField(QWidget* parent) : QLineEdit(parent) {
        setReadOnly(true);
        setPlaceholderText(u"Find a token (Ctrl+F)"_s);
        setAccessibleName(u"Find a token"_s);
        setToolTip(u"Find words, /patterns/ or a condition such as steps = 3 and nll > 4 (Ctrl+F)"_s);
        setMinimumWidth(120);
        setMaximumWidth(220);
        setFocusPolicy(Qt::TabFocus);
    }

protected:
    void mousePressEvent(QMouseEvent*) override { Q_EMIT returnPressed(); }
};

} // namespace

TopBar::TopBar(const ViewContext& context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      menus_(new QMenuBar(this)),
      a_(new RunBox(this)),
      b_(new RunBox(this)),
      find_(new FindField(this)) {
    menus_->setNativeMenuBar(false);
    menus_->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Preferred);
    for (QComboBox* box : {a_, b_}) {
        box->setIconSize({18, 18});
        box->setMinimumContentsLength(16);
        box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
        box->setMinimumWidth(150);
        box->setMaximumWidth(250);
        box->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    }
    a_->setAccessibleName(u"Run A"_s);
    a_->setToolTip(u"Run A: the shown run"_s);
    b_->setAccessibleName(u"Run B"_s);
    b_->setToolTip(u"Run B: the run to compare with A"_s);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(6, 5, 14, 6);
    row->setSpacing(14);
    row->addWidget(menus_);
    row->addStretch(1);
    row->addWidget(a_, 6);
    row->addWidget(b_, 6);
    row->addStretch(2);
    row->addWidget(find_, 3);

    connect(find_, &QLineEdit::returnPressed, this, &TopBar::findRequested);
    connect(a_, &QComboBox::activated, this, [this] {
        const auto key = a_->currentData().value<RunKey>();
        if (key == context_.selection.runB()) {
            context_.selection.setRunB(context_.selection.runA());
        }
        context_.selection.setRunA(key);
    });
    connect(b_, &QComboBox::activated, this,
            [this] { context_.selection.setRunB(b_->currentData().value<RunKey>()); });
    connect(&context_.selection, &Selection::runsChanged, this, &TopBar::fill);
    connect(&context_.data, &TraceData::traceOpened, this, &TopBar::fill);
    connect(&context_.data, &TraceData::traceChanged, this, &TopBar::fill);
    connect(&context_.data, &TraceData::traceClosed, this, &TopBar::fill);
    connect(&context_.theme, &Theme::changed, this, &TopBar::restyle);
    restyle();
}

void TopBar::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    // The boxes give way before the menus do.
    const int others = a_->minimumWidth() + b_->minimumWidth() + find_->minimumWidth() + 90;
    const int menus = menus_->sizeHint().width();
    menus_->setMinimumWidth(width() >= menus + others ? menus : 0);
}

void TopBar::restyle() {
    fill();
    update();
}

void TopBar::fill() {
    const Palette& colours = context_.theme.colours();
    const auto wear = [&](QComboBox* box, const QString& letter, const QColor& fill, const QColor& text) {
        static_cast<RunBox*>(box)->setBadge(badge(letter, fill, text, context_.theme.caps()));
    };
    wear(a_, u"A"_s, colours.a, colours.onA);
    wear(b_, u"B"_s, colours.b, colours.onB);
    const RunInfo* a = context_.data.run(context_.selection.runA());
    std::vector<ChooserEntry> ofA;
    std::vector<ChooserEntry> ofB{{u"no B"_s, QVariant::fromValue(RunKey{})}};
    for (const QString& live : context_.data.liveNames()) {
        for (const RunInfo& run : context_.data.runs(live)) {
            ofA.push_back({u"%1 · thinking"_s.arg(QString::fromStdString(run.name)),
                           QVariant::fromValue(RunKey{live, run.id})});
        }
    }
    const QStringList traces = context_.data.traces();
    for (const QString& trace : traces) {
        const QString stem =
            context_.data.isScratch(trace) ? u"scratch"_s : QFileInfo(trace).completeBaseName();
        for (const RunInfo& run : context_.data.runs(trace)) {
            const RunKey key{trace, run.id};
            // The trace's name tells runs apart. It is left out if only one trace is open, unless that is
            // Scratch.
            QString name = QString::fromStdString(run.name);
            if (traces.size() > 1 || context_.data.isScratch(trace)) {
                name += u" · "_s + stem;
            }
            ofA.push_back({name,
                           QVariant::fromValue(key),
                           name,
                           {{Qt::DecorationRole, context_.theme.runColour(key, context_.selection)},
                            {name_role, name}}});
            ofB.push_back(ofA.back());
            if (a != nullptr && run.text_digest != a->text_digest) {
                ofB.back().text = u"%1 (another text)"_s.arg(name);
            }
        }
    }
    if (ofA.empty()) {
        ofA.push_back({u"no run"_s, QVariant::fromValue(RunKey{})});
    }
    const RunKey chosen = context_.selection.runA();
    fill_chooser(*a_, ofA,
                 std::any_of(ofA.begin(), ofA.end(),
                             [&](const ChooserEntry& one) { return one.data.value<RunKey>() == chosen; })
                     ? QVariant::fromValue(chosen)
                     : ofA.front().data);
    const RunKey other = context_.selection.runB();
    fill_chooser(*b_, ofB, QVariant::fromValue(context_.data.run(other) == nullptr ? RunKey{} : other));
    for (QComboBox* box : {a_, b_}) { // what drops down shows whole names, however narrow the box is
        box->view()->setMinimumWidth(
            std::min(box->view()->sizeHintForColumn(0) + 36, std::max(width() * 2 / 3, 250)));
    }
}

void TopBar::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), context_.theme.colours().panel);
    painter.fillRect(0, height() - 1, width(), 1, context_.theme.colours().line);
}

} // namespace ponderscope
