//! The custom resource that is reconciled, as an author declares it.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// What the author of a Widget asks for.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "bench.steersman.dev",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus",
    schema = "disabled"
)]
pub(crate) struct WidgetSpec {
    /// Which Widget this is.
    pub(crate) size: usize,
    /// Some text.
    pub(crate) note: String,
    /// What it is made of.
    pub(crate) parts: Vec<Part>,
}

/// A part of a Widget.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) struct Part {
    /// What it is called.
    pub(crate) name: String,
    /// How many there are.
    pub(crate) count: usize,
}

/// What was observed.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
pub(crate) struct WidgetStatus {
    /// The mark that was reconciled last.
    pub(crate) written: String,
}

#[cfg(test)]
mod tests {
    use steersman_bench_server::widgets;

    use super::*;

    #[test]
    fn the_type_knows_every_field_of_a_widget() {
        let value = widgets::widget(17);
        let widget: Widget = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(widget).unwrap(), value);
    }
}
