// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/controls.h"
#include "views/common/task.h"
#include "views/common/view_context.h"

#include <QTreeWidget>

namespace ponderscope {

/// Tasks of runs A and B: accuracy, and the documents whose answers differ between steps or between the runs.
/// A click on a document shows its first answer option in the text.
class TaskAnswers : public QTreeWidget {
    Q_OBJECT
public:
    explicit TaskAnswers(ViewContext context, QWidget* parent = nullptr);
    void renew(); ///< reads runs A and B again
    [[nodiscard]] bool isBusy() const { return job_.isBusy(); }

private:
    TraceData& data_;
    Selection& selection_;
    QLabel* note_ = soft_label(viewport()); ///< why the list is empty
    Task job_;
};

} // namespace ponderscope
