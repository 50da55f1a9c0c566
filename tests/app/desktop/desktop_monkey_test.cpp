// SPDX-License-Identifier: GPL-3.0-or-later
// Somebody who clicks, drags, types and scrolls anywhere while the files change under the window. What is
// done is a function of the seed and of what the window shows. PONDERSCOPE_GESTURES: how many (1500);
// PONDERSCOPE_SEED.
#include "core/base/splitmix.h"
#include "tests/app/desktop/desktop_stage.h"

#include <array>
#include <malloc.h>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using testing::Stage;

namespace {

int from_environment(const char* name, int otherwise) {
    return qEnvironmentVariableIsSet(name) ? qEnvironmentVariableIntValue(name) : otherwise;
}

class Monkey : public QObject {
public:
    Monkey(Stage& stage, std::uint64_t seed) : stage_(stage), seed_(seed) {}

    /// Each gesture asks for the next one first, so that they go on within the loops of menus and dialogs.
    void play(qint64 gestures) {
        most_ = gestures;
        gesture();
        QVERIFY(
            QTest::qWaitFor([&] { return done_ >= gestures; }, static_cast<int>(60'000 + gestures * 100)));
        for (int tries = 0; QWidget* open = in_front(); ++tries) {
            QVERIFY2(tries < 1000, qPrintable(u"%1 '%2' '%3' (visible: %4) does not close"_s
                                                  .arg(QLatin1String(open->metaObject()->className()),
                                                       open->objectName(), open->windowTitle())
                                                  .arg(open->isVisible())));
            open->close();
            QCoreApplication::processEvents();
        }
    }

private:
    std::uint64_t below(std::uint64_t bound) { return bounded(splitmix64(seed_, draws_++), bound); }
    template <class List>
    const auto& one_of(const List& list) {
        return list[static_cast<typename List::size_type>(below(static_cast<std::uint64_t>(list.size())))];
    }

    /// A menu or dialog that waits for an answer.
    static QWidget* in_front() {
        QWidget* const popup = QApplication::activePopupWidget();
        return popup != nullptr ? popup : QApplication::activeModalWidget();
    }

    void gesture() {
        if (done_ >= most_ && depth_ == 0) {
            return;
        }
        QTimer::singleShot(0, this, [this] { gesture(); }); // one timer does not fire within itself
        if (done_ >= most_) {                               // what waits for an answer gets none, and ends
            if (QWidget* const open = in_front()) {
                open->close();
            }
            return;
        }
        if (++done_ % 500 == 0) {
            std::printf("%lld gestures\n", static_cast<long long>(done_));
            std::fflush(stdout);
        }
        QWidget* const front = in_front();
        if (front != nullptr && (depth_ > 3 || below(6) == 0)) {
            front->close();
            return;
        }
        ++depth_;
        const std::uint64_t kind = below(100);
        if (!stage_.window.isVisible()) {
            stage_.window.show();
        } else if (kind < 40) {
            press(front);
        } else if (kind < 55) {
            type();
        } else if (kind < 65) {
            scroll(front);
        } else if (kind < 70) {
            ask_for_menu(front);
        } else if (kind >= 93) {
            change_files(front != nullptr);
        } else if (front != nullptr) {
            press(front); // what is behind cannot be reached
        } else if (kind < 80) {
            act();
        } else if (kind < 90) {
            move_selection();
        } else {
            stage_.window.resize(400 + static_cast<int>(below(1400)), 300 + static_cast<int>(below(900)));
        }
        --depth_;
    }

    QWidget* somewhere(QWidget* front) {
        QWidget* top = front;
        if (top == nullptr) {
            QWidgetList visible;
            for (QWidget* one : QApplication::topLevelWidgets()) {
                if (one->isVisible()) {
                    visible.push_back(one);
                }
            }
            top = visible.isEmpty() || below(3) != 0 ? &stage_.window : one_of(visible);
        }
        QWidget* const at = top->childAt(static_cast<int>(below(static_cast<std::uint64_t>(top->width()))),
                                         static_cast<int>(below(static_cast<std::uint64_t>(top->height()))));
        return at != nullptr ? at : top;
    }
    QPoint within(const QWidget* widget) {
        return {static_cast<int>(below(static_cast<std::uint64_t>(std::max(1, widget->width())))),
                static_cast<int>(below(static_cast<std::uint64_t>(std::max(1, widget->height()))))};
    }
    static void mouse(QWidget* widget, QEvent::Type type, QPoint at, Qt::MouseButton button,
                      Qt::KeyboardModifiers modifiers) {
        const Qt::MouseButtons held =
            type == QEvent::MouseButtonRelease ? Qt::NoButton : Qt::MouseButtons(button);
        QMouseEvent event(type, at, widget->mapToGlobal(at),
                          type == QEvent::MouseMove ? Qt::NoButton : button, held, modifiers);
        QApplication::sendEvent(widget, &event);
    }

    void press(QWidget* front) {
        const QPointer<QWidget> widget = somewhere(front);
        if (!widget->isEnabled()) {
            return;
        }
        static constexpr std::array<Qt::KeyboardModifier, 4> modifiers{Qt::NoModifier, Qt::ShiftModifier,
                                                                       Qt::ControlModifier, Qt::AltModifier};
        const Qt::KeyboardModifiers with = modifiers[below(4)];
        const Qt::MouseButton button = below(8) == 0 ? Qt::MiddleButton : Qt::LeftButton;
        mouse(widget, QEvent::MouseMove, within(widget), Qt::NoButton, with);
        if (widget) {
            mouse(widget, below(6) == 0 ? QEvent::MouseButtonDblClick : QEvent::MouseButtonPress,
                  within(widget), button, with);
        }
        for (std::uint64_t moves = below(4); moves > 0 && widget; --moves) {
            mouse(widget, QEvent::MouseMove, within(widget) + QPoint(static_cast<int>(below(60)) - 30, 0),
                  button, with);
        }
        if (widget) {
            mouse(widget, QEvent::MouseButtonRelease, within(widget), button, with);
        }
    }

    void type() {
        QWidget* const focus = QApplication::focusWidget();
        QWidget* const widget = focus != nullptr ? focus : &stage_.window;
        static constexpr std::array<Qt::Key, 24> keys{
            Qt::Key_Left, Qt::Key_Right,  Qt::Key_Up,        Qt::Key_Down,   Qt::Key_Home, Qt::Key_End,
            Qt::Key_Tab,  Qt::Key_Return, Qt::Key_Backspace, Qt::Key_Delete, Qt::Key_Plus, Qt::Key_Minus,
            Qt::Key_F,    Qt::Key_G,      Qt::Key_Space,     Qt::Key_Escape, Qt::Key_0,    Qt::Key_9,
            Qt::Key_F3,   Qt::Key_F1,     Qt::Key_Z,         Qt::Key_Y,      Qt::Key_K,    Qt::Key_PageDown};
        static constexpr std::array<QStringView, 8> texts{u"e",          u"nll > 2", u"(a|b)*", u"[",
                                                          u"\U0001F999", u"id = 4",  u"-1",     u"1e9"};
        if (below(3) == 0) {
            for (const QChar c : one_of(texts)) {
                QKeyEvent event(QEvent::KeyPress, 0, Qt::NoModifier, QString(c));
                QApplication::sendEvent(widget, &event);
                if (QApplication::focusWidget() != widget) {
                    return;
                }
            }
            return;
        }
        QTest::sendKeyEvent(QTest::Click, widget, one_of(keys), QString(),
                            below(4) == 0 ? Qt::ControlModifier : Qt::NoModifier);
    }

    void scroll(QWidget* front) {
        QWidget* const widget = somewhere(front);
        const QPoint at = within(widget);
        QWheelEvent event(at, widget->mapToGlobal(at), {}, {0, below(2) == 0 ? 120 : -240}, Qt::NoButton,
                          below(3) == 0 ? Qt::ControlModifier : Qt::NoModifier, Qt::NoScrollPhase, false);
        QApplication::sendEvent(widget, &event);
    }

    void ask_for_menu(QWidget* front) {
        QWidget* const widget = somewhere(front);
        const QPoint at = within(widget);
        QContextMenuEvent event(QContextMenuEvent::Mouse, at, widget->mapToGlobal(at));
        QApplication::sendEvent(widget, &event);
    }

    /// Any action but those that end the program or leave it: another window, a browser.
    void act() {
        QList<QAction*> actions;
        for (QAction* action : stage_.window.findChildren<QAction*>()) {
            const QString text = action->text().remove(u'&');
            if (action->isEnabled() && action->menu() == nullptr && !text.contains(u"Quit"_s) &&
                !text.contains(u"New Window"_s) && !text.contains(u"Record"_s)) {
                actions.push_back(action);
            }
        }
        if (!actions.isEmpty()) {
            one_of(actions)->trigger();
        }
    }

    void move_selection() {
        Selection& selection = stage_.window.selection();
        switch (below(5)) {
        case 0:
            return selection.setToken(static_cast<qint64>(below(500)) - 20);
        case 1:
            return selection.setHover(static_cast<qint64>(below(500)) - 20);
        case 2:
            return selection.setSequence(static_cast<qint64>(below(4)));
        case 3:
            return selection.setStep(static_cast<int>(below(6)) - 1);
        default: {
            static constexpr std::array<const char*, 8> panels{"heatmap", "depth",  "halting",  "lab",
                                                               "compare", "pareto", "inspector"};
            (void)stage_.window.raisePanel(QString::fromLatin1(one_of(panels)));
        }
        }
    }

    /// The traces beside the window: made, cut, gone, and where the window can be reached opened, closed,
    /// dropped.
    void change_files(bool only_outside) {
        const QString name = u"%1.ponder"_s.arg(below(3));
        const QString path = stage_.folder.filePath(name);
        switch (only_outside ? std::array<std::uint64_t, 3>{3, 5, 6}[below(3)] : below(8)) {
        case 0:
        case 1:
        case 2:
            if (QFile::exists(path)) {
                return stage_.window.open(path);
            }
            [[fallthrough]];
        case 3:
            if (!QFile::exists(path)) {
                (void)stage_.make(
                    name, {.seed = below(4), .sequences = 2, .tokens = 60, .withDepth = below(2) == 0});
            }
            return;
        case 4:
            return stage_.window.data().close(path);
        case 5:
            (void)QFile::remove(path);
            return;
        case 6: {
            QFile file(path);
            if (file.open(QIODevice::ReadWrite)) {
                (void)file.resize(file.size() / 2);
            }
            return;
        }
        default:
            stage_.drop({QUrl::fromLocalFile(path)});
        }
    }

    Stage& stage_;
    std::uint64_t seed_;
    std::uint64_t draws_ = 0;
    qint64 done_ = 0;
    qint64 most_ = 0;
    int depth_ = 0;
};

std::size_t memory_in_use() {
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
    QPixmapCache::clear();
    return ::mallinfo2().uordblks;
}

/// Workers of a window that is gone are cancelled and not waited for: what is in use once they have ended.
std::size_t memory_at_rest() {
    std::size_t least = memory_in_use();
    for (int unchanged = 0; unchanged < 10;) {
        QTest::qWait(200);
        const std::size_t now = memory_in_use();
        unchanged = now + (64 << 10) < least ? 0 : unchanged + 1;
        least = std::min(least, now);
    }
    return least;
}

} // namespace

class DesktopMonkeyTest : public QObject {
    Q_OBJECT
public:
    static void initMain() {
        qputenv("HOME", QDir::tempPath().toUtf8());
    } // what is written by chance lands there

private Q_SLOTS:
    /// A shortcut is pressed, or the window resized, while a panel hangs on the mouse or glides into its
    /// place.
    void theLayoutChangesWhileAPanelIsDragged_data() {
        QTest::addColumn<QString>("change");
        QTest::addColumn<bool>("held");
        for (const char* change :
             {"default", "maximise", "present", "narrow", "low", "session", "close", "float"}) {
            QTest::addRow("%s, held", change) << QString::fromLatin1(change) << true;
            QTest::addRow("%s, dropped", change) << QString::fromLatin1(change) << false;
        }
    }
    void theLayoutChangesWhileAPanelIsDragged() {
        QFETCH(const QString, change);
        QFETCH(const bool, held);
        Stage stage;
        MainWindow& window = stage.window;
        window.resize(1440, 900);
        QVERIFY(stage.shows(stage.make(u"0.ponder"_s, {.sequences = 2, .tokens = 60})));
        const QString session = stage.folder.filePath(u"s.ponder-session"_s);
        QVERIFY(window.session().saveSessionTo(session));
        for (const char* name : {"library", "halting"}) { // the one of a group of tabs, too
            auto* const dock = window.findChild<QDockWidget*>(QString::fromLatin1(name));
            for (const QPoint to : {QPoint(60, 300), QPoint(700, 850), QPoint(1400, 500)}) {
                window.docks().arrange();
                window.raisePanel(dock->objectName());
                QTest::qWait(1);
                QWidget* const title = dock->titleBarWidget();
                const auto drag = [&](QEvent::Type type, QPoint global) {
                    const bool move = type == QEvent::MouseMove;
                    QMouseEvent event(type, title->mapFromGlobal(global), global,
                                      move ? Qt::NoButton : Qt::LeftButton,
                                      type == QEvent::MouseButtonRelease ? Qt::NoButton : Qt::LeftButton, {});
                    QApplication::sendEvent(title, &event);
                };
                drag(QEvent::MouseButtonPress, title->mapToGlobal(QPoint(8, 8)));
                drag(QEvent::MouseMove, title->mapToGlobal(QPoint(40, 40)));
                drag(QEvent::MouseMove, window.mapToGlobal(to));
                drag(QEvent::MouseMove, window.mapToGlobal(to + QPoint(3, 3)));
                if (!held) {
                    drag(QEvent::MouseButtonRelease, window.mapToGlobal(to));
                }
                if (change == QLatin1String("default")) {
                    window.docks().arrange();
                } else if (change == QLatin1String("maximise")) {
                    window.docks().maximise(dock);
                } else if (change == QLatin1String("present")) {
                    window.session().present();
                } else if (change == QLatin1String("narrow")) {
                    window.resize(1000, 900);
                } else if (change == QLatin1String("low")) {
                    window.resize(1440, 700);
                } else if (change == QLatin1String("session")) {
                    window.open(session);
                } else if (change == QLatin1String("close")) {
                    dock->close();
                } else {
                    dock->setFloating(!dock->isFloating());
                }
                QTest::qWait(5);
                if (held) {
                    drag(QEvent::MouseMove, window.mapToGlobal(to - QPoint(30, 30)));
                    drag(QEvent::MouseButtonRelease, window.mapToGlobal(to));
                }
                QTest::qWait(1);
                if (change == QLatin1String("maximise")) {
                    window.docks().maximise(dock);
                } else if (window.session().isPresenting()) {
                    window.session().present();
                }
                window.resize(1440, 900);
                QTest::qWait(1);
            }
        }
    }

    void nothingBreaksAndMemoryComesBack() {
        const QTemporaryDir aside;
        QVERIFY(QDir::setCurrent(aside.path()));
        const qint64 gestures = from_environment("PONDERSCOPE_GESTURES", 1500);
        const auto seed = static_cast<std::uint64_t>(from_environment("PONDERSCOPE_SEED", 1));
        const auto play = [&](std::uint64_t number, qint64 count) {
            Stage stage;
            stage.window.resize(1200, 800);
            QVERIFY(stage.shows(stage.make(u"0.ponder"_s)));
            Monkey(stage, number).play(count);
        };
        play(seed, gestures / 2); // fills the caches of fonts and styles, once and for all
        const std::size_t before = memory_at_rest();
        play(seed, gestures - gestures / 2); // the same again: what it wants more is kept by nobody's wish
        const std::size_t after = memory_at_rest();
        std::printf("%.1f MB before, %.1f MB after\n", static_cast<double>(before) / 1e6,
                    static_cast<double>(after) / 1e6);
        // A sanitizer's heap does not tell, and looks for leaks itself.
        QVERIFY2(before == 0 || after < before + std::max(before / 20, std::size_t{2} << 20),
                 "the window keeps memory when it goes");
        QVERIFY(QDir::setCurrent(QDir::tempPath()));
    }
};

QTEST_MAIN(DesktopMonkeyTest)
#include "desktop_monkey_test.moc"
