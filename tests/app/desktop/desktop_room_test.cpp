// SPDX-License-Identifier: GPL-3.0-or-later
// Whether everything can be read in windows from 1024 x 700 to 2560 x 1440: the widgets of the window are
// walked with a trace open and every panel raised.
#include "app/desktop/panel_frame.h"
#include "app/desktop/panel_help.h"
#include "app/desktop/panels.h"
#include "app/desktop/record_dialog.h"
#include "app/desktop/top_bar.h"
#include "tests/app/desktop/desktop_stage.h"
#include "views/chart/chart_plot.h"
#include "views/common/style.h"
#include "views/figure/export_dialog.h"
#include "views/heatmap/heatmap_view.h"
#include "views/heatmap/step_map_canvas.h"

using namespace Qt::StringLiterals;
using namespace ponderscope;

using testing::Stage;

namespace {

QString named(const QWidget& widget) {
    QString text = widget.accessibleName();
    if (const auto* button = qobject_cast<const QAbstractButton*>(&widget); button && text.isEmpty()) {
        text = button->text();
    }
    if (const auto* label = qobject_cast<const QLabel*>(&widget)) {
        text = label->text().left(60);
    }
    return u"%1 “%2” in %3, %4 x %5"_s
        .arg(QLatin1String(widget.metaObject()->className()), text,
             widget.parentWidget() == nullptr
                 ? QString()
                 : QLatin1String(widget.parentWidget()->metaObject()->className()))
        .arg(widget.width())
        .arg(widget.height());
}

bool is_control(const QWidget& widget) {
    return testing::is_any_of(widget,
                              {"QAbstractButton", "QComboBox", "QLabel", "QAbstractSpinBox", "QLineEdit",
                               "QSlider", "ponderscope::ChartPlot", "ponderscope::StepMapCanvas", "QTabBar"});
}

/// Empty, or how the text of a control does not fit.
QString cut(const QWidget& widget) {
    const auto short_by = [&](int needed, int there, const char* what) {
        return needed > there ? u"%1: %2 needs %3, has %4"_s.arg(named(widget), QLatin1String(what))
                                    .arg(needed)
                                    .arg(there)
                              : QString();
    };
    if (const auto* label = qobject_cast<const QLabel*>(&widget)) {
        if (label->text().isEmpty() || label->sizePolicy().horizontalPolicy() == QSizePolicy::Ignored ||
            !label->toolTip().isEmpty()) {
            return {}; // a read-out, whose tooltip says all
        }
        return label->wordWrap() ? short_by(label->heightForWidth(label->width()), label->height(), "height")
                                 : short_by(label->sizeHint().width(), label->width() + 1, "width");
    }
    if (const auto* box = qobject_cast<const QComboBox*>(&widget)) {
        QStyleOptionComboBox option;
        option.initFrom(box);
        option.editable = box->isEditable();
        const int room = box->style()
                             ->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, box)
                             .width();
        // Names of runs may be long; everything else is written out.
        const int text = box->fontMetrics().horizontalAdvance(box->currentText());
        return short_by(std::min(text, 110), room, "width");
    }
    if (const auto* button = qobject_cast<const QAbstractButton*>(&widget);
        button && !button->text().isEmpty()) {
        return short_by(std::min(button->sizeHint().width(), button->maximumWidth()), button->width() + 1,
                        "width");
    }
    if (const auto* box = qobject_cast<const QAbstractSpinBox*>(&widget)) {
        const auto* field = box->findChild<const QLineEdit*>();
        return short_by(field->fontMetrics().horizontalAdvance(box->text()), field->width() - 2, "width");
    }
    if (const auto* tabs = qobject_cast<const QTabBar*>(&widget)) {
        for (int i = 0; i < tabs->count(); ++i) {
            const QString fault = short_by(tabs->fontMetrics().horizontalAdvance(tabs->tabText(i)),
                                           tabs->tabRect(i).width(), "a tab");
            if (!fault.isEmpty()) {
                return fault;
            }
        }
    }
    return {};
}

/// Where a widget is drawn in its window; what a scroll area hides is not.
QRect shown_rect(const QWidget& widget, const QWidget& window) {
    QRect rect(widget.mapTo(&window, QPoint()), widget.size());
    for (const QWidget* at = widget.parentWidget(); at != nullptr && at != &window; at = at->parentWidget()) {
        rect &= QRect(at->mapTo(&window, QPoint()), at->size());
    }
    return rect;
}

bool scrolls(const QWidget& widget) {
    const QWidget* at = widget.parentWidget();
    while (at != nullptr && !at->inherits("QAbstractScrollArea")) {
        at = at->parentWidget();
    }
    return at != nullptr;
}

/// A stage in the program's look. It ends with Qt's own, before its theme goes.
struct Styled : Stage {
    explicit Styled(const QSize& size) {
        QApplication::setStyle(new Style(theme));
        QApplication::setPalette(theme.qtPalette());
        QApplication::setFont(theme.body());
        window.resize(size);
        window.docks().arrange();
    }
    ~Styled() { QApplication::setStyle(u"Fusion"_s); }
};

/// Of a window or a dialog, in which \p fewest controls are expected.
QStringList faults_of(QWidget& window, std::size_t fewest = 20) {
    QStringList faults;
    std::vector<std::pair<QWidget*, QRect>> controls; // that are on the screen
    const QList<QWidget*> all = window.findChildren<QWidget*>();
    for (QWidget* widget : all) {
        if (!widget->isVisible() || widget->window() != window.window() ||
            widget->visibleRegion().isEmpty() || !is_control(*widget)) {
            continue;
        }
        if (const QString fault = cut(*widget); !fault.isEmpty()) {
            faults << fault;
        }
        const QRect whole(widget->mapTo(&window, QPoint()), widget->size());
        const QRect rect = shown_rect(*widget, window);
        if (!scrolls(*widget) && rect != whole) {
            faults << named(*widget) + u": cut by what it stands in"_s;
        }
        if (auto* chart = qobject_cast<ChartPlot*>(widget); chart != nullptr && chart->hint().isEmpty()) {
            const QRectF plot = chart->plotRect();
            if (plot.width() < 80 || plot.height() < 40 || !QRectF(chart->canvas()->rect()).contains(plot)) {
                faults << named(*widget) +
                              u": a plot of %1 x %2 between its axes"_s.arg(plot.width()).arg(plot.height());
            }
        }
        controls.emplace_back(widget, rect);
    }
    if (controls.size() < fewest) {
        faults << u"only %1 controls were found"_s.arg(controls.size());
    }
    for (std::size_t i = 0; i < controls.size(); ++i) {
        for (std::size_t j = i + 1; j < controls.size(); ++j) {
            const auto& [one, a] = controls[i];
            const auto& [other, b] = controls[j];
            const QRect both = a.intersected(b);
            if (both.width() > 1 && both.height() > 1 && !one->isAncestorOf(other) &&
                !other->isAncestorOf(one)) {
                faults << named(*one) + u" overlaps "_s + named(*other);
            }
        }
    }
    return faults;
}

} // namespace

class DesktopRoomTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void nothingIsCutAndNothingOverlaps_data() {
        QTest::addColumn<QSize>("size");
        QTest::newRow("1024x700") << QSize(1024, 700);
        QTest::newRow("1440x900") << QSize(1440, 900);
        QTest::newRow("2560x1440") << QSize(2560, 1440);
    }
    void nothingIsCutAndNothingOverlaps() {
        QFETCH(QSize, size);
        Styled stage(size);
        QVERIFY(
            stage.shows(stage.make(u"room.ponder"_s, {.sequences = 2, .tokens = 300, .withDepth = true})));
        stage.window.selection().setToken(31);
        QCOMPARE(stage.window.size(), size);
        // The text keeps its place.
        QVERIFY2(stage.window.text().view().viewport()->height() >= 150 &&
                     stage.window.text().view().viewport()->width() >= size.width() / 2 - 20,
                 qPrintable(u"%1 x %2"_s.arg(stage.window.text().view().viewport()->width())
                                .arg(stage.window.text().view().viewport()->height())));
        QStringList faults;
        for (const Panel& panel : panels()) {
            QVERIFY(stage.window.raisePanel(QString::fromLatin1(panel.name)));
            QTest::qWait(30);
            QVERIFY(stage.settle());
            QTest::qWait(30);
            for (const QString& fault : faults_of(stage.window)) {
                const QString line = QLatin1String(panel.name) + u": "_s + fault;
                if (!faults.join(u'\n').contains(fault)) {
                    faults << line;
                }
            }
        }
        QVERIFY2(faults.isEmpty(), qPrintable(faults.join(u'\n')));
    }

    void dialogsHaveRoom() {
        Styled stage({1024, 700});
        QVERIFY(stage.shows(stage.make(u"dialogs.ponder"_s)));
        QStringList faults;
        const auto look = [&](QWidget* shown, const char* name) {
            QVERIFY2(shown != nullptr, name);
            shown->resize(shown->size().boundedTo(stage.window.size()));
            QTest::qWait(60);
            for (const QString& fault : faults_of(*shown, 1)) {
                faults << QLatin1String(name) + u": "_s + fault;
            }
            for (const QScrollArea* area : shown->findChildren<QScrollArea*>()) {
                if (area->horizontalScrollBar()->maximum() > 0) {
                    faults << u"%1: %2 scrolls sideways by %3 of %4"_s
                                  .arg(QLatin1String(name), area->widget()->metaObject()->className())
                                  .arg(area->horizontalScrollBar()->maximum())
                                  .arg(area->viewport()->width());
                }
            }
            shown->close();
        };
        stage.window.runs().showRecordDialog();
        look(stage.window.runs().recordDialog(), "record");
        stage.window.figures().exportFigure(figure::FigureKind::policy_front);
        QTRY_VERIFY(stage.window.figures().dialog()->figure() != nullptr);
        look(stage.window.figures().dialog(), "workbench");
        QVERIFY2(faults.isEmpty(), qPrintable(faults.join(u'\n')));
    }

    void helpIsNeverHigherThanTheScreen() {
        Stage stage;
        QVERIFY(stage.shows(stage.make(u"help.ponder"_s)));
        for (const PanelHelp& help : all_panel_help()) {
            QWidget* sheet = show_panel_help(help, &stage.window, stage.theme);
            const auto* scroll = sheet->findChild<QScrollArea*>();
            QVERIFY(scroll != nullptr);
            // The offscreen platform gives popups a frame of two pixels.
            QVERIFY2(sheet->y() >= 0 && sheet->y() + sheet->height() <=
                                            stage.window.screen()->availableGeometry().bottom() + 3,
                     qPrintable(help.title));
            // What is not seen at once can be scrolled to.
            const int hidden = scroll->widget()->height() - scroll->viewport()->height();
            QVERIFY2(scroll->verticalScrollBar()->maximum() >= hidden, qPrintable(help.title));
            QVERIFY2(scroll->widget()->width() <= scroll->viewport()->width(), qPrintable(help.title));
            sheet->close();
        }
    }

    void panelsFoldAndComeBack() {
        Stage stage;
        stage.window.resize(1440, 900);
        stage.window.docks().arrange();
        stage.window.show();
        QDockWidget* inspector = stage.window.findChild<QDockWidget*>(u"inspector"_s);
        QDockWidget* library = stage.window.findChild<QDockWidget*>(u"library"_s);
        QDockWidget* heatmap = stage.window.findChild<QDockWidget*>(u"heatmap"_s);
        QDockWidget* compare = stage.window.findChild<QDockWidget*>(u"compare"_s);
        QCOMPARE(stage.window.dockWidgetArea(inspector), Qt::RightDockWidgetArea);
        QVERIFY(!stage.window.tabifiedDockWidgets(heatmap).contains(compare));
        stage.window.resize(1024, 700);
        QTRY_VERIFY(stage.window.tabifiedDockWidgets(library).contains(inspector));
        QTRY_VERIFY(stage.window.tabifiedDockWidgets(heatmap).contains(compare));
        stage.window.resize(1600, 1000);
        QTRY_COMPARE(stage.window.dockWidgetArea(inspector), Qt::RightDockWidgetArea);
        QTRY_VERIFY(!stage.window.tabifiedDockWidgets(heatmap).contains(compare));
        // What somebody put elsewhere stays there.
        stage.window.addDockWidget(Qt::LeftDockWidgetArea, compare);
        stage.window.resize(1024, 700);
        QTRY_VERIFY(stage.window.tabifiedDockWidgets(library).contains(inspector));
        QCOMPARE(stage.window.dockWidgetArea(compare), Qt::LeftDockWidgetArea);
    }

    void theWindowFitsItsScreen() {
        Stage stage;
        stage.window.resize(3000, 2000);
        stage.window.move(900, 900);
        fit_window(stage.window, QRect(0, 0, 1024, 740));
        QVERIFY(stage.window.width() <= 1024 && stage.window.height() <= 740);
        QVERIFY(QRect(0, 0, 1024, 740).contains(stage.window.geometry()));
    }

    void aMaximisedMapFillsItsPanel() {
        Stage stage;
        stage.window.resize(1300, 860);
        stage.window.docks().arrange();
        QVERIFY(stage.shows(stage.make(u"map.ponder"_s)));
        QDockWidget* dock = stage.window.findChild<QDockWidget*>(u"heatmap"_s);
        const QByteArray before = stage.window.saveState();
        Q_EMIT static_cast<DockTitle*>(dock->titleBarWidget())->maximiseRequested();
        QTRY_VERIFY(dock->width() > 1280 && dock->height() > 700);
        QVERIFY(!stage.window.text().isVisible());
        QTRY_VERIFY(stage.window.panel<HeatmapView>().canvas()->height() > dock->height() * 3 / 4);
        stage.window.docks().maximise(dock);
        QTRY_VERIFY(stage.window.text().isVisible());
        QTRY_COMPARE(stage.window.saveState(), before);
        // Another panel that is asked for puts the window back first.
        stage.window.docks().maximise(dock);
        QVERIFY(stage.window.raisePanel(u"inspector"_s));
        QTRY_VERIFY(stage.window.text().isVisible());
    }

    void menusKeepTheirRoom() {
        Styled stage({1024, 700});
        stage.window.show();
        QMenuBar& menus = stage.window.topBar().menus();
        QTRY_VERIFY(menus.width() >= menus.sizeHint().width());
        QVERIFY(stage.window.topBar().runA().width() >= 150);
    }
};

QTEST_MAIN(DesktopRoomTest)
#include "desktop_room_test.moc"
