// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/greeting.h"

#include "app/desktop/dock_layout.h"
#include "app/desktop/message_bar.h"
#include "app/desktop/run_controller.h"
#include "app/desktop/settings.h"
#include "app/desktop/welcome.h"
#include "views/common/theme.h"
#include "views/text/quantity.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QAccessible>
#include <QDir>
#include <QEvent>
#include <QFrame>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QRegion>
#include <QStandardPaths>
#include <QStatusBar>
#include <QTimer>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {

Greeting::Greeting(const Shell& shell, DockLayout& docks, RunController& runs)
    : ShellPart(shell), docks_(docks), runs_(runs) {
    welcome_ = new WelcomePage(theme_, window_);
    welcome_->hide();
    window_->menuWidget()->installEventFilter(this); // a message moves the page down
    connect(welcome_, &WelcomePage::openRequested, this, &Greeting::openFilesWanted);
    connect(welcome_, &WelcomePage::pathChosen, this, &Greeting::openWanted);
    connect(welcome_, &WelcomePage::thinkRequested, &runs_, &RunController::showThink);
    connect(welcome_, &WelcomePage::recordedChosen, this, &Greeting::openSample);
    connect(welcome_, &WelcomePage::sampleChosen, this, &Greeting::recordSample);
    connect(welcome_, &WelcomePage::recordRequested, this, [this] { runs_.showRecordDialog(); });
    connect(welcome_, &WelcomePage::tourRequested, this, &Greeting::startTour);
    connect(welcome_, &WelcomePage::closed, this, &Greeting::hideWelcome);
    connect(&docks_, &DockLayout::restored, this, &Greeting::placeWelcome);
    connect(&text_->view(), &TextView::contentChanged, this, [this] {
        if (tourWanted_) {
            QMetaObject::invokeMethod(this, &Greeting::startTour, Qt::QueuedConnection);
        }
    });
}

void Greeting::placeWelcome() {
    const int top = window_->menuWidget()->geometry().bottom() + 1;
    welcome_->setGeometry(0, top, window_->width(),
                          std::max(0, window_->statusBar()->geometry().top() - top));
    welcome_->raise(); // over panels that were placed anew
}

void Greeting::showWelcome() {
    greeted_ = true;
    welcome_->setSamples(samples_.refresh());
    welcome_->setRecent(settings_.recent());
    placeWelcome();
    welcome_->show();
    welcome_->setFocus();
}

void Greeting::hideWelcome() {
    greeted_ = true;
    if (welcome_->isVisible()) {
        welcome_->hide();
        text_->view().setFocus();
    }
}

void Greeting::openSample() {
    const QString folder = QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation);
    QString problem;
    const QString copy = copy_of_recorded(samples_.get(), folder + u"/recorded"_s, problem);
    copy.isEmpty() ? Q_EMIT failed(problem) : Q_EMIT openWanted(copy);
}

void Greeting::recordSample(int model) {
    if (model < 0 || model >= static_cast<int>(samples_.get().models.size())) {
        return;
    }
    const QString folder = QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation);
    if (!QDir().mkpath(folder)) {
        messages_->show("sample.no-folder",
                        u"The folder %1 for the sample's trace could not be made. "
                        "Record the sample with Run → Record… into another folder."_s.arg(folder));
        return;
    }
    runs_.recorder().start(
        sample_request(samples_.get(), samples_.get().models[static_cast<std::size_t>(model)], folder));
}

void Greeting::startTour() {
    if (tour_ != nullptr) {
        return;
    }
    if (!selection_.runA().isValid() || !text_->view().sequence()) {
        // Over the sample, then; recorded ones open at once.
        tourWanted_ = true;
        if (!selection_.runA().isValid() && !runs_.recorder().isRunning()) {
            if (!samples_.get().recorded.isEmpty()) {
                openSample();
            } else if (!samples_.get().models.empty() && !samples_.get().text.isEmpty()) {
                recordSample(0);
            } else {
                tourWanted_ = false;
                messages_->show("sample.none",
                                u"This installation has no samples. Open a trace to take the tour."_s,
                                MessageBar::Kind::notice);
            }
        }
        return;
    }
    tourWanted_ = false;
    hideWelcome();
    const auto told = [this] {
        // Among the visible words, select the one with the most steps. On a tie, take the word with the
        // highest NLL in B, or in A without B.
        const TextView& view = text_->view();
        const auto a = view.sequence();
        if (!a) {
            return; // closed meanwhile, or still being read
        }
        const auto b =
            selection_.runB().isValid() ? data_.sequence(selection_.runB(), selection_.sequence()) : nullptr;
        const bool alike = b && b->tokens.id == a->tokens.id;
        const Attribution attribution = selection_.attribution();
        const std::vector<float> steps = token_values(Quantity::steps, *a, 0, attribution).values;
        const std::vector<float> nll = token_values(Quantity::nll, alike ? *b : *a, 0, attribution).values;
        qint64 best = view.firstVisibleToken();
        std::pair<float, float> most{-1, -1};
        const qint64 end =
            std::min(view.endVisibleToken(), static_cast<qint64>(std::min(steps.size(), nll.size())));
        for (qint64 token = best; token < end; ++token) {
            const auto place = static_cast<std::size_t>(token);
            const std::pair now{std::isnan(steps[place]) ? 0.0F : steps[place], nll[place]};
            if (!std::isnan(now.second) && now > most) {
                most = now;
                best = token;
            }
        }
        selection_.setToken(best);
    };
    const auto raise = [this](const char* panel) {
        return [this, panel] { docks_.raise(QString::fromLatin1(panel)); };
    };
    const bool two = selection_.runB().isValid();
    std::vector<TourStop> stops{
        {u"The text is coloured by surprise"_s,
         u"The colour of a token is its NLL, −ln p in nats. White words were expected, dark words were a "
         "surprise. The list above the text changes the quantity."_s,
         [this] { text_->setQuantity(Quantity::nll); }, [this] { return static_cast<QWidget*>(text_); }},
        {u"Ticks are pondering steps"_s,
         u"Ticks below a token are the steps that could run; filled ticks ran. Hover shows a token, a "
         "click pins it, arrows move. The pinned word took the most steps, and %1 was least sure of it."_s
             .arg(two ? u"B"_s : u"A"_s),
         told, [this] { return static_cast<QWidget*>(&text_->view()); }},
        {u"Inside one token"_s,
         u"The model's answer after each step, and the NLL by step. %1 These are early answers, not "
         "thoughts."_s.arg(two ? u"Run A is teal, run B orange."_s : u"Run A is teal."_s),
         raise("inspector"), [this] { return docks_.panel(u"inspector"_s); }},
        {u"Every token, every step"_s,
         u"Tokens are from left to right, steps from top to bottom. The wheel zooms, drag pans, a click "
         "selects. Grey: the step did not run."_s,
         raise("heatmap"), [this] { return docks_.panel(u"heatmap"_s); }},
        {u"What if another rule decided?"_s,
         u"Choose a policy and move its threshold. The text shows the steps that each word would have. "
         "This replays the recording; it does not rerun the model."_s,
         raise("lab"), [this] { return docks_.panel(u"lab"_s); }},
        {u"Yours now"_s,
         u"Drop a trace or a checkpoint folder on the window. Run → Record… records a checkpoint. Ctrl+F "
         "finds words, /patterns/ and conditions such as steps = 3 and nll > 4. F1 explains a panel and "
         "what must not be concluded from it."_s,
         raise("compare"), [this] { return window_->menuWidget(); }}};
    tour_ = new Tour(std::move(stops), theme_, window_);
    connect(tour_, &Tour::ended, this, [this] { tour_ = nullptr; });
}

Greeting::~Greeting() {
    delete tour_;
    delete welcome_;
}

bool Greeting::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::Resize) {
        QMetaObject::invokeMethod(this, &Greeting::placeWelcome, Qt::QueuedConnection);
    }
    return ShellPart::eventFilter(watched, event);
}

namespace {

constexpr int card_width = 340;
constexpr int gap = 14;

} // namespace

Tour::Tour(std::vector<TourStop> stops, Theme& theme, QWidget* window)
    : QWidget(window),
      stops_(std::move(stops)),
      theme_(theme),
      card_(new QFrame(window)),
      title_(new QLabel(card_)),
      text_(new QLabel(card_)),
      count_(new QLabel(card_)),
      back_(new QPushButton(u"Back"_s, card_)),
      on_(new QPushButton(u"Next"_s, card_)) {
    setObjectName(u"tour"_s);
    setAccessibleName(u"Tour"_s);
    // The veil shows and does not catch: what is pointed at can be tried.
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setFocusPolicy(Qt::NoFocus);
    text_->setWordWrap(true);
    title_->setFont(theme.strong());
    text_->setFont(theme.body());
    count_->setFont(theme.small());
    count_->setForegroundRole(QPalette::PlaceholderText);
    auto* end = new QPushButton(u"End"_s, card_);
    auto* buttons = new QHBoxLayout;
    buttons->setSpacing(6);
    buttons->addWidget(count_);
    buttons->addStretch(1);
    buttons->addWidget(end);
    buttons->addWidget(back_);
    buttons->addWidget(on_);
    auto* column = new QVBoxLayout(card_);
    column->setContentsMargins(18, 16, 18, 14);
    column->setSpacing(8);
    column->addWidget(title_);
    column->addWidget(text_);
    column->addLayout(buttons);
    card_->setFixedWidth(card_width);
    card_->setFrameShape(QFrame::Box);
    card_->setAutoFillBackground(true);
    card_->setAccessibleName(u"Tour"_s);
    card_->installEventFilter(this);
    for (QPushButton* button : {end, back_, on_}) {
        button->installEventFilter(this);
    }
    connect(end, &QPushButton::clicked, this, &Tour::end);
    connect(back_, &QPushButton::clicked, this, &Tour::previous);
    connect(on_, &QPushButton::clicked, this, &Tour::next);
    window->installEventFilter(this);
    QWidget::show();
    card_->show();
    show(0);
}

void Tour::show(int stop) {
    stop_ = std::clamp(stop, 0, stops() - 1);
    const TourStop& now = stops_[static_cast<std::size_t>(stop_)];
    if (now.prepare) {
        now.prepare();
    }
    target_ = now.target ? now.target() : nullptr;
    title_->setText(now.title);
    text_->setText(now.text);
    count_->setText(u"%1 of %2"_s.arg(stop_ + 1).arg(stops()));
    back_->setEnabled(stop_ > 0);
    on_->setText(stop_ + 1 == stops() ? u"Done"_s : u"Next"_s);
    place();
    // Qt lays out a raised panel in the next turn of the event loop.
    QTimer::singleShot(0, this, &Tour::place);
    on_->setFocus();
    card_->setAccessibleDescription(now.title + u' ' + now.text);
    QAccessibleEvent alert(card_, QAccessible::Alert);
    QAccessible::updateAccessibility(&alert);
}

void Tour::place() {
    QWidget* window = parentWidget();
    setGeometry(window->rect());
    raise();
    card_->raise();
    card_->setFixedHeight(card_->layout()->heightForWidth(card_width));
    const QSize size(card_width, card_->height());
    QPoint corner((width() - size.width()) / 2, (height() - size.height()) / 2);
    if (target_ != nullptr && target_->isVisible()) {
        // Beside it where there is most room.
        const QRect box(target_->mapTo(window, QPoint()), target_->size());
        const int left = box.left();
        const int right = width() - box.right();
        const int above = box.top();
        const int below = height() - box.bottom();
        if (std::max(left, right) > size.width() + 2 * gap) {
            corner = {right >= left ? box.right() + gap : box.left() - gap - size.width(), box.top() + 20};
        } else if (std::max(above, below) > size.height() + 2 * gap) {
            corner = {box.center().x() - size.width() / 2,
                      below >= above ? box.bottom() + gap : box.top() - gap - size.height()};
        } else {
            corner = box.bottomRight() - QPoint(size.width() + gap, size.height() + gap);
        }
    }
    corner.setX(std::clamp(corner.x(), gap, std::max(gap, width() - size.width() - gap)));
    corner.setY(std::clamp(corner.y(), gap, std::max(gap, height() - size.height() - gap)));
    card_->move(corner);
    update();
}

void Tour::next() {
    if (stop_ + 1 >= stops()) {
        end();
    } else {
        show(stop_ + 1);
    }
}

void Tour::previous() {
    show(stop_ - 1);
}

void Tour::end() {
    parentWidget()->removeEventFilter(this);
    card_->deleteLater();
    deleteLater();
    hide();
    card_->hide();
    Q_EMIT ended();
}

bool Tour::eventFilter(QObject* watched, QEvent* event) {
    if (watched == parentWidget() && event->type() == QEvent::Resize) {
        place();
    } else if (watched != parentWidget() && event->type() == QEvent::KeyPress) {
        auto* key = static_cast<QKeyEvent*>(event);
        switch (key->key()) {
        case Qt::Key_Escape:
            end();
            return true;
        case Qt::Key_Right:
            next();
            return true;
        case Qt::Key_Left:
            previous();
            return true;
        case Qt::Key_Return:
        case Qt::Key_Enter:
            if (auto* button = qobject_cast<QPushButton*>(watched)) {
                button->click();
                return true;
            }
            break;
        default:
            break;
        }
    }
    return QWidget::eventFilter(watched, event);
}

void Tour::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    QRegion veil(rect());
    QRect box;
    if (target_ != nullptr && target_->isVisible()) {
        box = QRect(target_->mapTo(parentWidget(), QPoint()), target_->size());
        veil -= QRegion(box);
    }
    painter.setClipRegion(veil);
    painter.fillRect(rect(), QColor(0, 0, 0, theme_.dark() ? 120 : 60));
    painter.setClipping(false);
    if (!box.isNull()) {
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(theme_.colours().a, 2));
        painter.drawRoundedRect(QRectF(box).adjusted(1, 1, -1, -1), 4, 4);
    }
}

} // namespace ponderscope
