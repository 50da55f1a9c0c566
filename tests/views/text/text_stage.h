// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/tools/annotations.h"
#include "tests/views/view_stage.h"
#include "views/common/trace_contents.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QComboBox>

namespace ponderscope::testing {

/// A panel on a trace of its own.
struct Stage : ViewStage {
    explicit Stage(const SampleTrace& what, bool settled = true) {
        panel.resize(800, 500);
        panel.show();
        open(write("stage.ponder", what));
        selection.setRunA(run(0));
        if (settled) {
            settle();
        }
    }
    void settle() {
        wait_for([&] { return panel.view().sequence() && panel.view().settled(); });
    }
    TextView& view() { return panel.view(); }
    /// Annotates run A.
    void annotate(const std::vector<Annotation>& annotations) {
        put_annotations(trace.toStdString(), *data.run(run(0)), data.contents(run(0))->sequences,
                        annotations);
        data.refresh();
    }

    TextPanel panel{context};
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
