// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/support/sample_trace.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QComboBox>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

namespace ponderscope::testing {

using Qt::StringLiterals::operator""_s;

/// A panel on a trace of its own.
struct Stage {
    explicit Stage(const SampleTrace& what) {
        path = folder.filePath(u"stage.ponder"_s);
        write_sample_trace(path.toStdString(), what);
        panel.resize(800, 500);
        panel.show();
        QSignalSpy opened(&data, &TraceData::traceOpened);
        data.open(path);
        opened.wait();
        a = {path, data.runs(path)[0].id};
        selection.setRunA(a);
    }
    [[nodiscard]] bool settle() {
        return QTest::qWaitFor([&] { return panel.view().sequence() && panel.view().settled(); }, 10'000);
    }
    TextView& view() { return panel.view(); }

    QTemporaryDir folder;
    QString path;
    Theme theme{Appearance::light};
    TraceData data;
    Selection selection;
    RunKey a;
    TextPanel panel{ViewContext{data, selection, theme}};
};

/// Panels may have lists of other things before it.
inline QComboBox* list_called(const QWidget& panel, const QString& name) {
    for (QComboBox* box : panel.findChildren<QComboBox*>()) {
        if (box->accessibleName() == name) {
            return box;
        }
    }
    return nullptr;
}

} // namespace ponderscope::testing
