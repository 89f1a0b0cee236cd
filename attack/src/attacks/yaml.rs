//! YAML that names the same thing again and again.

use http::Method;

use crate::caller::{Ask, Who, YAML};
use crate::field::{Field, config_maps, storm};
use crate::seen::Seen;

/// Six levels of eight aliases each: some hundred bytes that stand for a quarter of a million
/// values.
pub(super) async fn aliases(field: Field) -> Result<Seen, String> {
    let mut body = String::from("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\n");
    body.push_str("a0: &a0 [x,x,x,x,x,x,x,x]\n");
    for level in 1..=6 {
        let below = format!("*a{}", level - 1);
        let aliases = vec![below; 8].join(",");
        body.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let ask = Ask::new(Method::POST, config_maps(), body).of(YAML);
    let attacker = field.caller(Who::Attacker)?;
    field.begin().await;
    let asks = std::iter::repeat_n(ask, field.size(40, 4));
    let mut seen = storm(&attacker, 4, field.seconds(30, 5), asks).await;
    seen.fault_if(seen.slowest > 5.0, format!("an answer took {:.1} s", seen.slowest));
    Ok(seen)
}
