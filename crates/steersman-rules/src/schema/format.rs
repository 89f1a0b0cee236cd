//! The `format` of strings in custom resources' schemas: the names that Kubernetes knows, and
//! what each accepts. Formats it does not know mean nothing.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use jiff::civil::Date;
use regex::Regex;
use steersman_cel::Url;

use crate::names;

/// A format and its test.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The name, without dashes.
    name: &'static str,
    accepts: fn(&str) -> bool,
}

/// Every format, by its name without dashes.
const FORMATS: &[Format] = &[
    Format { name: "bsonobjectid", accepts: |text| text.len() == 24 && is_hex(text) },
    Format { name: "byte", accepts: |text| BASE64.is_match(text) },
    Format { name: "cidr", accepts: is_cidr },
    Format { name: "creditcard", accepts: |text| is_credit_card(text) },
    Format { name: "date", accepts: is_date },
    Format { name: "datetime", accepts: is_date_time },
    Format { name: "duration", accepts: is_duration },
    Format { name: "email", accepts: is_email },
    Format { name: "hexcolor", accepts: |text| is_hex_colour(text) },
    Format { name: "hostname", accepts: is_host_name },
    Format { name: "ipv4", accepts: |text| text.contains('.') && address(text).is_some() },
    Format { name: "ipv6", accepts: |text| text.parse::<Ipv6Addr>().is_ok() },
    Format { name: "isbn", accepts: |text| is_isbn10(text) || is_isbn13(text) },
    Format { name: "isbn10", accepts: is_isbn10 },
    Format { name: "isbn13", accepts: is_isbn13 },
    Format { name: "k8slongname", accepts: |text| names::dns1123_subdomain(text).is_empty() },
    Format { name: "k8sshortname", accepts: |text| names::dns1123_label(text).is_empty() },
    Format { name: "mac", accepts: is_mac },
    Format { name: "password", accepts: |_| true },
    Format { name: "rgbcolor", accepts: |text| RGB.is_match(text) },
    Format { name: "ssn", accepts: |text| SSN.is_match(text) },
    Format { name: "uri", accepts: |text| Url::parse(text).is_ok() },
    Format { name: "uuid", accepts: |text| is_uuid(text, None) },
    Format { name: "uuid3", accepts: |text| is_uuid(text, Some('3')) },
    Format { name: "uuid4", accepts: |text| is_uuid(text, Some('4')) },
    Format { name: "uuid5", accepts: |text| is_uuid(text, Some('5')) },
];

static BASE64: LazyLock<Regex> = LazyLock::new(|| {
    pattern("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$")
});
/// A duration as Go reads it.
static DURATION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^[-+]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)$")
});
/// A number and what may be a unit.
static AMOUNT: LazyLock<Regex> = LazyLock::new(|| pattern("([0-9]+)[ \t\n\x0c\r]*([A-Za-zµ]+)"));
static RGB: LazyLock<Regex> = LazyLock::new(|| {
    let byte = r"\s*(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*";
    pattern(&format!(r"^rgb\({byte},{byte},{byte}\)$"))
});
static SSN: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is written here")
}

impl Format {
    /// The format of that name, if there is one.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let plain: String = name.chars().filter(|c| *c != '-').collect();
        FORMATS.iter().find(|format| format.name == plain).copied()
    }

    /// Whether a text is of this format.
    pub(crate) fn accepts(self, text: &str) -> bool {
        (self.accepts)(text)
    }
}

/// Whether a format means anything for a type, or for none.
pub(crate) fn is_known(kind: &str, format: &str) -> bool {
    match kind {
        "" | "string" => Format::named(format).is_some(),
        "integer" => ["int32", "int64"].contains(&format),
        "number" => ["float", "double"].contains(&format),
        _ => false,
    }
}

fn is_hex(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_hexdigit())
}

fn is_hex_colour(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && is_hex(digits)
}

/// An address, in which numbers may begin with zeros.
fn address(text: &str) -> Option<IpAddr> {
    let plain = |number: &str| match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0".to_owned(),
        plain => plain.to_owned(),
    };
    let (before, numbers) = match text.rsplit_once(':') {
        Some((before, numbers)) if numbers.contains('.') => (format!("{before}:"), numbers),
        Some(_) => return text.parse().ok(),
        None => (String::new(), text),
    };
    let numbers: Vec<String> = numbers.split('.').map(plain).collect();
    format!("{before}{}", numbers.join(".")).parse().ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((prefix, bits)) = text.split_once('/') else { return false };
    let max = match address(prefix) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    bits.bytes().all(|byte| byte.is_ascii_digit()) && bits.parse::<u8>().is_ok_and(|b| b <= max)
}

/// Six, eight or twenty bytes, in pairs between colons or dashes or in fours between dots.
fn is_mac(text: &str) -> bool {
    let fits = |separator: char, digits: usize| {
        let parts: Vec<&str> = text.split(separator).collect();
        parts.iter().all(|part| part.len() == digits && is_hex(part))
            && matches!(parts.len() * digits, 12 | 16 | 40)
    };
    fits(':', 2) || fits('-', 2) || fits('.', 4)
}

fn is_date(text: &str) -> bool {
    let shaped = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    shaped && text.parse::<Date>().is_ok()
}

/// A date and a time of day, and whatever follows behind a further `t`.
fn is_date_time(text: &str) -> bool {
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$")
    });
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some(parts) = TIME.captures(time) else { return false };
    let below = |group: usize, limit: u8| parts[group].parse::<u8>().is_ok_and(|n| n < limit);
    is_date(date) && below(1, 24) && below(2, 60) && below(3, 60)
}

/// A duration as Go reads it, or any text with a number of units of time in it.
fn is_duration(text: &str) -> bool {
    const UNITS: [(&[&str], &str); 8] = [
        (&["ns"], "nano"),
        (&["us", "µs"], "micro"),
        (&["ms"], "milli"),
        (&["s"], "sec"),
        (&["m"], "min"),
        (&["h", "hr"], "hour"),
        (&["d"], "day"),
        (&["w", "wk"], "week"),
    ];
    let is_unit = |unit: &str| {
        let unit = unit.to_lowercase();
        UNITS.iter().any(|(short, long)| short.contains(&unit.as_str()) || unit.starts_with(long))
    };
    DURATION.is_match(text)
        || AMOUNT.captures_iter(text).all(|amount| amount[1].parse::<i64>().is_ok())
            && AMOUNT.captures_iter(text).any(|amount| is_unit(&amount[2]))
}

/// An address, or a name with an address in angle brackets.
fn is_email(text: &str) -> bool {
    let in_brackets = text.strip_suffix('>').and_then(|rest| rest.rsplit_once('<'));
    let address = in_brackets.map_or(text, |(_, address)| address);
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    (is_quoted(local) || is_dotted(local)) && is_dotted(domain)
}

/// Words between dots, of what an address is written in.
fn is_dotted(text: &str) -> bool {
    let fits =
        |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii();
    text.split('.').all(|word| !word.is_empty() && word.chars().all(fits))
}

/// A text in quotes that is not empty; a backslash takes its meaning from what follows.
fn is_quoted(text: &str) -> bool {
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let Some(inner) = inner.filter(|inner| !inner.is_empty()) else { return false };
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        let c = if c == '\\' { chars.next() } else { Some(c).filter(|c| *c != '"') };
        if c.is_none_or(char::is_control) {
            return false;
        }
    }
    true
}

/// Labels of letters, digits, symbols and inner dashes; the last of several has letters only, and one
/// alone has a dash behind its first letter at most.
fn is_host_name(text: &str) -> bool {
    static LABEL: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[a-zA-Z0-9\p{S}\p{L}]+$"));
    static LETTERS: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[a-zA-Z\p{L}]+$"));
    let plain = |label: &str| LABEL.is_match(label);
    let Some((labels, last)) = text.rsplit_once('.') else {
        let first = text.chars().next().map_or(0, char::len_utf8);
        let (first, rest) = text.split_at(first);
        let rest = rest.strip_prefix('-').unwrap_or(rest);
        return text.len() <= 63 && plain(first) && (rest.is_empty() || plain(rest));
    };
    let is_label = |label: &str| {
        let is_outer = |end: &char| *end != '-';
        let ends = [label.chars().next(), label.chars().next_back()];
        label.len() <= 63
            && plain(&label.replace('-', "x"))
            && ends.into_iter().all(|end| end.as_ref().is_some_and(is_outer))
    };
    text.len() <= 255
        && last.len() <= 63
        && last.chars().count() >= 2
        && LETTERS.is_match(last)
        && labels.split('.').all(is_label)
}

/// Hexadecimal digits in groups whose dashes may be missing; `version` is the 13th digit.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let mut digits = String::with_capacity(32);
    for c in text.chars() {
        match c {
            '-' if matches!(digits.len(), 8 | 12 | 16 | 20) => {}
            c if c.is_ascii_hexdigit() => digits.push(c.to_ascii_lowercase()),
            _ => return false,
        }
    }
    let variant = |version: char| version == '3' || digits[16..].starts_with(['8', '9', 'a', 'b']);
    let doubled = text.contains("--") || text.ends_with('-');
    digits.len() == 32
        && !doubled
        && version.is_none_or(|v| digits[12..].starts_with(v) && variant(v))
}

fn is_credit_card(text: &str) -> bool {
    static CARD: LazyLock<Regex> = LazyLock::new(|| {
        pattern(concat!(
            "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}",
            "|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
        ))
    });
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let sum = digits.bytes().rev().enumerate().map(|(index, byte)| {
        let digit = u32::from(byte - b'0');
        if index % 2 == 0 { digit } else { digit * 2 / 10 + digit * 2 % 10 }
    });
    CARD.is_match(&digits) && sum.sum::<u32>() % 10 == 0
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let value = |(index, c): (usize, char)| match c {
        'X' if index == 9 => Some(10),
        c => c.to_digit(10),
    };
    let values: Option<Vec<u32>> = digits.chars().enumerate().map(value).collect();
    let Some(values) = values.filter(|values| values.len() == 10) else { return false };
    values.iter().zip(1..).map(|(value, weight): (&u32, u32)| value * weight).sum::<u32>() % 11 == 0
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    let values: Option<Vec<u32>> = digits.chars().map(|c| c.to_digit(10)).collect();
    let Some(values) = values.filter(|values| values.len() == 13) else { return false };
    let weighed = values.iter().enumerate().map(|(index, value)| value * [1, 3][index % 2]);
    weighed.sum::<u32>() % 10 == 0
}

fn isbn_digits(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | ' ')).collect()
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn every_format_accepts_its_own_and_refuses_others() {
        for (name, good, bad) in [
            ("bsonobjectid", "507f1f77bcf86cd799439011", "507f1f77bcf86cd79943901"),
            ("byte", "aGk=", "aGk"),
            ("byte", "aGl=", "a==="),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("cidr", "::/0", "::"),
            ("cidr", "192.0.02.1/24", "192.0.2/24"),
            ("creditcard", "4111-1111-1111-1111", "4111-1111-1111-1112"),
            ("date", "2024-02-29", "2023-02-29"),
            ("date-time", "2014-12-15T19:30:20.000Z", "2014-12-15 19:30:20Z"),
            ("date-time", "2014-12-15T19:30:20,5z", "2014-12-15T19:30:20"),
            ("datetime", "2014-12-15t19:30:20+02:00", "2014-12-15T24:30:20Z"),
            ("duration", "1h30m", "1 fortnight"),
            ("duration", "22 ns", "h"),
            ("duration", "about 2 WEEKS or so", "99999999999999999999 s"),
            ("email", "Ada <ada@example.com>", "ada"),
            ("email", "\"Abc@def\"@example.com", "somebody@somewhere@com"),
            ("email", "!#$%&'*+-/=?^_`{}|~@example.com", "a..b@example.com"),
            ("email", "customer/department=shipping@example.com", "\"\"@example.com"),
            ("hexcolor", "#FFaa00", "#FFaa0"),
            ("hostname", "api.example.com", "-api.example.com"),
            ("hostname", "localhost", "a.b.1"),
            ("hostname", "x-y", "my-host"),
            ("hostname", "ex$ample", "somewhere.com!"),
            ("hostname", "\u{2601}\u{2192}\u{2744}.ws", "www.\u{8a79}\u{59c6}\u{65af}.x"),
            ("hostname", "xn--bcher-kva.example.com", "www.example-.org"),
            ("ipv4", "1.2.3.4", "1.2.3.256"),
            ("ipv4", "192.168.1.01", "192.168.1."),
            ("ipv4", "::ffff:1.2.3.4", "::1"),
            ("ipv6", "::1", "1.2.3.4"),
            ("isbn", "978-0321751041", "978-0321751042"),
            ("isbn10", "0321751043", "0321751044"),
            ("k8s-short-name", "a-b", "A"),
            ("mac", "01:23:45:67:89:ab", "01:23:45:67:89"),
            ("rgbcolor", "rgb(255, 0,12)", "rgb(256,0,0)"),
            ("ssn", "111-22-3333", "111-22-333"),
            ("uri", "https://example.com/a?b", "example.com"),
            ("uri", "/path", "http://a b"),
            ("uri", "mailto:a", "/%zz"),
            ("uuid", "A987FBC9-4BED-3078-CF07-9141BA07C9F3", "A987FBC9"),
            (
                "uuid4",
                "57b73598-8764-4ad0-a76a-679bb6640eb1",
                "A987FBC9-4BED-3078-CF07-9141BA07C9F3",
            ),
        ] {
            let format = Format::named(name).unwrap();
            assert!(format.accepts(good), "{name} {good}");
            assert!(!format.accepts(bad), "{name} {bad}");
            assert!(!format.accepts("\u{0}\u{1F600} \u{e9}-"), "{name}");
        }
        assert!(Format::named("password").unwrap().accepts("anything"));
        assert!(Format::named("colour").is_none());
    }
}
