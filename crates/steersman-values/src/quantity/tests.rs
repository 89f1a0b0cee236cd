use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
use serde_json::json;

use super::*;

#[test]
fn equal_quantities_are_equal_however_they_are_written() {
    for (one, other) in [
        (json!("1"), json!("1000m")),
        (json!(1), json!("1")),
        (json!("0.5"), json!("500m")),
        (json!(0.1), json!("100m")),
        (json!("1Gi"), json!("1024Mi")),
        (json!("1k"), json!("1e3")),
        (json!("1k"), json!("1E3")),
        (json!("+1.5Ki"), json!("1536")),
        (json!("-1"), json!("-1000m")),
        (json!("1E"), json!("1e18")),
        (json!(".5"), json!("0.5")),
        (json!("5."), json!("5")),
        (json!(" 5 "), json!("5")),
    ] {
        assert!(Quantity::of(&one).is_some(), "{one}");
        assert_eq!(Quantity::of(&one), Quantity::of(&other), "{one} {other}");
    }
}

#[test]
fn what_is_not_a_quantity_is_refused() {
    for bad in ["", "a", "1x", "1KiB", ".", "+", "1 Gi", "1e", "1e1.5", "1.2.3", "--1", "1ki"] {
        assert!(Quantity::parse(bad).is_err(), "{bad}");
    }
    assert_eq!(Quantity::of(&json!(true)), None);
}

#[test]
fn quantities_are_written_as_kubernetes_writes_them() {
    for (given, canonical) in [
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("1.5Ki", "1536"),
        ("512Ki", "512Ki"),
        ("8Ki", "8Ki"),
        ("1024", "1024"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("2000k", "2M"),
        ("1e3", "1e3"),
        ("10e3", "10e3"),
        ("1e4", "10e3"),
        ("0", "0"),
        ("0Gi", "0"),
        ("-0", "0"),
        ("-1000m", "-1"),
        ("0.0000000001", "1n"),
        ("100000000000000000000", "100E"),
        ("9223372036854775808Ki", "9223372036854775807"),
        ("0.1Ki", "102400m"),
        ("0.0001Ki", "102400u"),
        // Kept, although there is a shorter way.
        ("+1", "+1"),
        ("01", "01"),
        ("1E3", "1E3"),
    ] {
        let written = Quantity::canonical(given).unwrap_or_else(|| given.to_owned());
        assert_eq!(written, canonical, "{given}");
    }
}

#[test]
fn amounts_of_any_size_compare() {
    let ascending = [
        "-1e400",
        "-1E",
        "-1",
        "-1n",
        "0",
        "1n",
        "1u",
        "1m",
        "999m",
        "1",
        "1023",
        "1Ki",
        "1M",
        "1Mi",
        "9E",
        "340282366920938463463374607431768211455",
        "9e38",
        "1e40",
        "1e400",
    ];
    let parsed: Vec<_> = ascending.iter().filter_map(|text| Quantity::parse(text).ok()).collect();
    assert_eq!(parsed.len(), ascending.len());
    assert!(parsed.is_sorted_by(|a, b| a < b), "{parsed:?}");
}

#[test]
fn resources_are_rounded_up_to_thousandths() {
    for (given, rounded) in [("1.0001", "1001m"), ("1n", "1m"), ("-1n", "-1m"), ("5", "5")] {
        let quantity = Quantity::parse(given).unwrap();
        assert_eq!(quantity.rounded_to_milli().to_string(), rounded);
    }
}

fn texts() -> impl Strategy<Value = String> {
    let suffix = "(n|u|m||k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]{1,2})";
    proptest::string::string_regex(&format!("[+-]?[0-9]{{1,9}}(\\.[0-9]{{1,6}})?{suffix}"))
        .expect("a valid pattern")
}

proptest! {
    #[test]
    fn writing_and_reading_keeps_the_amount(text in texts()) {
        let quantity = Quantity::parse(&text).unwrap();
        let written = quantity.to_string();
        let read = Quantity::parse(&written).unwrap();
        prop_assert_eq!(read, quantity, "{} {}", text, written);
        prop_assert_eq!(read.to_string(), written);
    }

    #[test]
    fn what_is_canonical_stays(text in texts()) {
        let once = Quantity::canonical(&text).unwrap_or_else(|| text.clone());
        let twice = Quantity::canonical(&once).unwrap_or_else(|| once.clone());
        prop_assert_eq!(Quantity::parse(&text), Quantity::parse(&once));
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn order_is_that_of_the_numbers(a in any::<i32>(), b in any::<i32>(), scale in 0usize..4) {
        let suffix = ["m", "", "k", "Gi"][scale];
        let parse = |n: i32| Quantity::parse(&format!("{n}{suffix}")).unwrap();
        prop_assert_eq!(parse(a).cmp(&parse(b)), a.cmp(&b));
    }

    #[test]
    fn sums_are_those_of_the_numbers(a in any::<i32>(), b in any::<i32>()) {
        let parse = |n: i64| Quantity::parse(&format!("{n}m")).unwrap();
        let sum = parse(a.into()).checked_add(parse(b.into())).unwrap();
        prop_assert_eq!(sum, parse(i64::from(a) + i64::from(b)));
        prop_assert_eq!(sum, parse(b.into()).checked_add(parse(a.into())).unwrap());
    }

    #[test]
    fn no_text_makes_it_panic(text in ".{0,30}", tail in "[0-9.eEKi+-]{0,60}") {
        for text in [&text, &tail, &format!("{tail}{text}")] {
            if let Ok(quantity) = Quantity::parse(text) {
                prop_assert!(quantity <= quantity);
                let _ = (quantity.to_string(), quantity.checked_add(quantity));
                let _ = (quantity.rounded_to_milli(), quantity.is_multiple_of(quantity));
            }
            let _ = Quantity::canonical(text);
        }
    }
}

#[test]
fn every_form_of_quantity_is_read_exactly() {
    let table = [
        ("0", 0),
        ("1", 1_000),
        ("100m", 100),
        ("1.5", 1_500),
        (".5", 500),
        ("5.", 5_000),
        ("+2", 2_000),
        ("-1", -1_000),
        ("2k", 2_000_000),
        ("1Ki", 1_024_000),
        ("1.5Ki", 1_536_000),
        ("1e3", 1_000_000),
        ("1E3", 1_000_000),
        ("1e-3", 1),
        ("0.0005", 1), // half a thousandth rounds up
        ("1n", 1),
    ];
    for (text, milli) in table {
        assert_eq!(Quantity::parse(text).unwrap().milli_value(), milli, "{text}");
    }
    assert_eq!(Quantity::parse("7Ei").unwrap().value(), 7 << 60);
    assert_eq!(Quantity::parse("1E").unwrap().value(), 10_i64.pow(18));
    assert_eq!(Quantity::parse("32Gi").unwrap().value(), 32 << 30);
}

#[test]
fn what_is_out_of_range_counts_as_the_largest_or_the_smallest_amount() {
    let digits = "9".repeat(60);
    for text in ["1e19", "1e31", "1e999"] {
        assert_eq!(Quantity::parse(text).unwrap().value(), i64::MAX, "{text}");
        assert_eq!(Quantity::parse(&format!("-{text}")).unwrap().value(), i64::MIN, "{text}");
    }
    // Kubernetes ends binary quantities there.
    assert_eq!(Quantity::parse("100Ei").unwrap().value(), i64::MAX);
    assert_eq!(Quantity::parse("-100Ei").unwrap().value(), -i64::MAX);
    for (text, negative) in [(digits.clone(), false), (format!("-{digits}"), true)] {
        assert_eq!(Quantity::parse(&text), Err(ParseQuantityError::Digits { negative }));
    }
    for text in ["1e-999", &format!("0.{}1", "0".repeat(30))] {
        assert_eq!(Quantity::parse(text).unwrap().milli_value(), 1, "{text}");
    }
    assert_eq!(Quantity::parse(&format!("2.{}", "0".repeat(60))).unwrap().value(), 2);
    assert_eq!(Quantity::parse("0e999").unwrap().value(), 0);
}

#[test]
fn a_difference_is_written_as_what_it_is_taken_from() {
    let quantity = |text: &str| Quantity::parse(text).unwrap();
    for (one, other, difference) in [
        ("1Gi", "512Mi", "512Mi"),
        ("1", "250m", "750m"),
        ("250m", "1", "-750m"),
        ("2k", "2000", "0"),
        ("0", "1Ki", "-1Ki"),
        ("-1", "-3", "2"),
    ] {
        let found = quantity(one).checked_sub(quantity(other)).unwrap();
        assert_eq!(found.to_string(), difference, "{one} - {other}");
    }
    assert_eq!(quantity("1e999").checked_sub(Quantity::ONE), None);
}

#[test]
fn whole_units_are_rounded_away_from_zero() {
    for (text, units) in [("1500m", "2"), ("-1500m", "-2"), ("1Gi", "1Gi"), ("0", "0")] {
        assert_eq!(Quantity::parse(text).unwrap().rounded_to_units().to_string(), units);
    }
    for number in [0, 1, 10, 1024] {
        assert_eq!(Quantity::units(number).to_string(), number.to_string());
    }
}
