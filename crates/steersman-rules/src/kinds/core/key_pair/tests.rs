//! Pairs that serve and pairs that do not.

use super::mistake;

const CURVE_CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBbDCCARKgAwIBAgIUVwb7eMZyF9kaGMoASZDPzZy5KqgwCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBYTAgFw0yNjExMTkwMTEzMTFaGA8yMTI2MTAyNjAxMTMxMVow
DDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABCBDE3ZRd47J
PaE4EsGEHyG6kTS1mbt2Z9tpWUKDpUXjVyxl6b8YyjNc16EUcAHdyHHlelJ/CgR3
w7r0Z5wg8dajUDBOMB0GA1UdDgQWBBQRBd7yeDutwj772xSbXA0k7VRt7jAfBgNV
HSMEGDAWgBQRBd7yeDutwj772xSbXA0k7VRt7jAMBgNVHRMBAf8EAjAAMAoGCCqG
SM49BAMCA0gAMEUCICPHauleKje1tTc3a7jCfFeHqFgLkq9AJMG4PhipAg/4AiEA
z17d0AllwyfBmbYIVzSvQpKDC9Yzyo7bhTq8owm1veo=
-----END CERTIFICATE-----
";

const CURVE_KEY: &str = "\
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIMbc/4zhSh+dSEhWyTT6B9dxQpOoBChjsVEEru0UkvEYoAoGCCqGSM49
AwEHoUQDQgAEIEMTdlF3jsk9oTgSwYQfIbqRNLWZu3Zn22lZQoOlReNXLGXpvxjK
M1zXoRRwAd3IceV6Un8KBHfDuvRnnCDx1g==
-----END EC PRIVATE KEY-----
";

const CURVE_KEY_WRAPPED: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgxtz/jOFKH51ISFbJ
NPoH13FCk6gEKGOxUQSu7RSS8RihRANCAAQgQxN2UXeOyT2hOBLBhB8hupE0tZm7
dmfbaVlCg6VF41csZem/GMozXNehFHAB3chx5XpSfwoEd8O69GecIPHW
-----END PRIVATE KEY-----
";

const OTHER_CURVE_KEY: &str = "\
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIMePh/d8Kw22NhcbtvY+jnhfn5KlKQV6hvr3LY/lzvDpoAoGCCqGSM49
AwEHoUQDQgAEh5hL439e91En1wsJQKpU+1f4fKNxzysCA2LTSCDoNNVs0Tt3db2p
4/QqwTcWAgL365szXzmE3VcOb5+9gVkJbA==
-----END EC PRIVATE KEY-----
";

const EDWARDS_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIPidOFfUf9nVFvjKBmyJHw0uOKjNRNHyiS78mSbHDzuy
-----END PRIVATE KEY-----
";

const RSA_CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIB8zCCAVygAwIBAgIUZt3KIkv/SgWCXnLs9xjCmtvYRA0wDQYJKoZIhvcNAQEL
BQAwDDEKMAgGA1UEAwwBcjAgFw0yNjExMTkwMTEzNDVaGA8yMTI2MTAyNjAxMTM0
NVowDDEKMAgGA1UEAwwBcjCBnzANBgkqhkiG9w0BAQEFAAOBjQAwgYkCgYEAnwNd
690GW3hif0Q/mQRZoqbU7ekVnZA53O+LsnhZDgC3ho7BGHN8YwWdGxFQDaI1rEa6
wvrnpHt1NdQKUCb4LXH08x2S/WQXYeGrixqlJi9tnlDKUdTrq6bgASzc2UQGu8VP
eKB7eQvmD23Sy5c5SQQDQUfZXQq+G6/67RwhVyMCAwEAAaNQME4wHQYDVR0OBBYE
FAp/++4h/IQGo21iLZujKqi6D62MMB8GA1UdIwQYMBaAFAp/++4h/IQGo21iLZuj
Kqi6D62MMAwGA1UdEwEB/wQCMAAwDQYJKoZIhvcNAQELBQADgYEADqGbRcqxRsIa
zjIvkffGPvmsX7fDrePtaDUSiCFUsrl9KQTo/T8cx4HhlzX7j/X0g97ZR1uMfNrb
SnekGFxFctZ7ZNbfHjf4+eqQBUWtHL4mZbLCJwo7QGYCeNSBLT+iJCYjMektpdMb
lG9VP0JrLiREgN8E6YK9DO/6WQVNoN8=
-----END CERTIFICATE-----
";

const RSA_KEY: &str = "\
-----BEGIN RSA PRIVATE KEY-----
MIICXQIBAAKBgQCfA13r3QZbeGJ/RD+ZBFmiptTt6RWdkDnc74uyeFkOALeGjsEY
c3xjBZ0bEVANojWsRrrC+ueke3U11ApQJvgtcfTzHZL9ZBdh4auLGqUmL22eUMpR
1OurpuABLNzZRAa7xU94oHt5C+YPbdLLlzlJBANBR9ldCr4br/rtHCFXIwIDAQAB
AoGAMmxw5hBqqardIRpVSIKWofthXighkJthnevgUrHTG5uilurB1K0abpQjI6gz
yH79oimzo4zI0+HKY01gD9arr810BhXvIeMDom9DSxr37qRvCC1vsNhObL/Bz5s7
2V8ejtM+s8Ca2iYGGeuoWpLhquK8RdfnS+fShEj1OObA+gECQQDSyvndjwwSoZx2
J7MEDQ8XLetLjYkW9ro673ATibHsd5h5dr47EcCrSaudVOLpsc96yBW+y9pHEzYX
cFPDOg2BAkEAwR2P+lo4/AzslM86VhHyuffZ5DOEbKooW/fd+iqFMilW9j1n8hTD
ek3Mq9Q7qeeV3QGckP8Td2+32hsSBKW+owJAc3wSsojJY3e5IZ6UXBbPerKEo4ry
XWtlEh7V905L9TJ8jac5h2EtfmpJJFQ6UTBCbJEsILDMcH4c93Bp455tgQJBAIlY
DxgMps6MGo5TO7gPF8QvhCYKhboK4p1WEedj6kscn56NWaoQHl6TimcCkFRsQmdm
SAXPg/bD28wgyJXJk2UCQQChdi8Liz5Ze2Gqr2TbbQxTVmkYaAjwbAG7GTh0VWDz
UcRBS9iGct7nsUAAKoQBBILypP7JykEbWo1MUYlwVdD+
-----END RSA PRIVATE KEY-----
";

const RSA_KEY_WRAPPED: &str = "\
-----BEGIN PRIVATE KEY-----
MIICdwIBADANBgkqhkiG9w0BAQEFAASCAmEwggJdAgEAAoGBAJ8DXevdBlt4Yn9E
P5kEWaKm1O3pFZ2QOdzvi7J4WQ4At4aOwRhzfGMFnRsRUA2iNaxGusL656R7dTXU
ClAm+C1x9PMdkv1kF2Hhq4sapSYvbZ5QylHU66um4AEs3NlEBrvFT3ige3kL5g9t
0suXOUkEA0FH2V0Kvhuv+u0cIVcjAgMBAAECgYAybHDmEGqpqt0hGlVIgpah+2Fe
KCGQm2Gd6+BSsdMbm6KW6sHUrRpulCMjqDPIfv2iKbOjjMjT4cpjTWAP1quvzXQG
Fe8h4wOib0NLGvfupG8ILW+w2E5sv8HPmzvZXx6O0z6zwJraJgYZ66hakuGq4rxF
1+dL59KESPU45sD6AQJBANLK+d2PDBKhnHYnswQNDxct60uNiRb2ujrvcBOJsex3
mHl2vjsRwKtJq51U4umxz3rIFb7L2kcTNhdwU8M6DYECQQDBHY/6Wjj8DOyUzzpW
EfK599nkM4Rsqihb9936KoUyKVb2PWfyFMN6Tcyr1Dup55XdAZyQ/xN3b7faGxIE
pb6jAkBzfBKyiMljd7khnpRcFs96soSjivJda2USHtX3Tkv1MnyNpzmHYS1+akkk
VDpRMEJskSwgsMxwfhz3cGnjnm2BAkEAiVgPGAymzowajlM7uA8XxC+EJgqFugri
nVYR52PqSxyfno1ZqhAeXpOKZwKQVGxCZ2ZIBc+D9sPbzCDIlcmTZQJBAKF2LwuL
Pll7YaqvZNttDFNWaRhoCPBsAbsZOHRVYPNRxEFL2IZy3uexQAAqhAEEgvKk/snK
QRtajUxRiXBV0P4=
-----END PRIVATE KEY-----
";

fn said(certificate: &str, key: &str) -> String {
    mistake(certificate.as_bytes(), key.as_bytes()).unwrap_or_default()
}

#[test]
fn a_key_serves_with_its_certificate_in_every_form() {
    for (certificate, key) in [
        (CURVE_CERTIFICATE, CURVE_KEY),
        (CURVE_CERTIFICATE, CURVE_KEY_WRAPPED),
        (RSA_CERTIFICATE, RSA_KEY),
        (RSA_CERTIFICATE, RSA_KEY_WRAPPED),
    ] {
        assert_eq!(said(certificate, key), "", "{key}");
    }
    let chain = format!("Subject: a\n{CURVE_CERTIFICATE}{RSA_CERTIFICATE}");
    let named = CURVE_KEY.replacen("-----\n", "-----\nName: a\n\n", 1).replace('\n', "\r\n");
    assert_eq!(said(&chain, &named), "");
}

#[test]
fn what_is_no_pair_is_told_as_go_tells_it() {
    let empty = "-----BEGIN A-----\nAQID\n-----END A-----\n";
    let odd = "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n";
    let unknown = "-----BEGIN PRIVATE KEY-----\nAQID\n-----END PRIVATE KEY-----\n";
    let broken = odd.replace("AQID", "A?ID");
    let twice = empty.repeat(2);
    for (certificate, key, why) in [
        ("", CURVE_KEY, "failed to find any PEM data in certificate input"),
        (broken.as_str(), CURVE_KEY, "failed to find any PEM data in certificate input"),
        (
            CURVE_KEY,
            CURVE_CERTIFICATE,
            "failed to find certificate PEM data in certificate input, but did find a private key; \
             PEM inputs may have been switched",
        ),
        (
            twice.as_str(),
            CURVE_KEY,
            "failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM \
             blocks of the following types: [A A]",
        ),
        (CURVE_CERTIFICATE, "key", "failed to find any PEM data in key input"),
        (
            CURVE_CERTIFICATE,
            CURVE_CERTIFICATE,
            "found a certificate rather than a key in the PEM for the private key",
        ),
        (
            CURVE_CERTIFICATE,
            empty,
            "failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after \
             skipping PEM blocks of the following types: [A]",
        ),
        (CURVE_CERTIFICATE, unknown, "failed to parse private key"),
        (CURVE_CERTIFICATE, OTHER_CURVE_KEY, "private key does not match public key"),
        (CURVE_CERTIFICATE, RSA_KEY, "private key type does not match public key type"),
        (RSA_CERTIFICATE, EDWARDS_KEY, "private key type does not match public key type"),
    ] {
        assert_eq!(said(certificate, key), format!("tls: {why}"));
    }
    assert_eq!(said(odd, CURVE_KEY), "x509: malformed certificate");
}
