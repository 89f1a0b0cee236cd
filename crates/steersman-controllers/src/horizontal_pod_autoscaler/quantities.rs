//! Quantities as thousandths, which is what all of this is computed in.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use steersman_rules::quantity::Quantity;

/// An amount in thousandths; nothing if it is no quantity, which the API server lets nobody write.
pub(super) fn milli(text: &Text) -> i64 {
    Quantity::parse(text.0.trim()).map_or(0, Quantity::milli_value)
}

/// The quantity of so many thousandths.
pub(super) fn of_milli(milli: i64) -> Text {
    canonical(format!("{milli}m"))
}

/// The same for a resource. Memory is told in powers of two, as the metrics server does, where
/// that is exact.
pub(super) fn of_resource(resource: &str, milli: i64) -> Text {
    const KIBI: i64 = 1024;
    let bytes = milli / 1000;
    if resource != "memory" || milli % 1000 != 0 || bytes.abs() < KIBI {
        return of_milli(milli);
    }
    if bytes % KIBI == 0 {
        return canonical(format!("{}Ki", bytes / KIBI));
    }
    Text(bytes.to_string())
}

fn canonical(text: String) -> Text {
    Text(Quantity::parse(&text).map_or(text, |quantity| quantity.to_string()))
}
