//! Who asks to be certified.

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;
use x509_parser::x509::AttributeTypeAndValue;

/// Who asks to be certified, as far as signers care.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The common name, of several the last.
    pub common_name: String,
    /// The organizations, which are the groups of a user.
    pub organizations: Vec<String>,
    /// Whether there is a DNS name among the other names.
    pub dns: bool,
    /// Whether there is an e-mail address.
    pub email: bool,
    /// Whether there is an IP address.
    pub ip: bool,
    /// Whether there is a URI.
    pub uri: bool,
    /// Those of the other names that certificates take over: their tags in DER and their content.
    pub names: Vec<(u8, Vec<u8>)>,
}

impl Subject {
    /// The subject of a request in PEM, if it is one.
    pub fn of_pem(pem: &[u8]) -> Option<Self> {
        let der = super::der(pem)?;
        let (_, request) = X509CertificationRequest::from_der(&der).ok()?;
        Some(Self::of(&request))
    }

    /// The subject of a request.
    pub fn of(request: &X509CertificationRequest<'_>) -> Self {
        let name = &request.certification_request_info.subject;
        let mut subject = Self {
            common_name: name.iter_common_name().last().map(text).unwrap_or_default(),
            organizations: name.iter_organization().map(text).collect(),
            ..Self::default()
        };
        for attribute in request.certification_request_info.iter_attributes() {
            let ParsedCriAttribute::ExtensionRequest(asked) = attribute.parsed_attribute() else {
                continue;
            };
            for extension in &asked.extensions {
                if let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension()
                {
                    names.general_names.iter().for_each(|name| subject.add(name));
                }
            }
        }
        subject
    }

    fn add(&mut self, name: &GeneralName<'_>) {
        let (tag, content, seen) = match name {
            GeneralName::RFC822Name(name) => (1, name.as_bytes(), &mut self.email),
            GeneralName::DNSName(name) => (2, name.as_bytes(), &mut self.dns),
            GeneralName::URI(name) => (6, name.as_bytes(), &mut self.uri),
            GeneralName::IPAddress(address) => (7, *address, &mut self.ip),
            _ => return,
        };
        *seen = true;
        self.names.push((tag, content.to_vec()));
    }
}

fn text(attribute: &AttributeTypeAndValue<'_>) -> String {
    attribute.as_str().unwrap_or_default().to_owned()
}
