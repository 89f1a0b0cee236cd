//! Where two answers differ, and of which kind each difference is.

use std::fmt;

use serde_json::Value;

use crate::content::{self, Content};
use crate::mask::{Masks, without_runs};
use crate::side::Answer;
use crate::step::{Role, Step, Subject};
use crate::tree;

/// One place where two answers differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The step's id.
    pub(crate) id: String,
    pub(crate) class: Class,
    /// A header, or the way to a field; numbers of list items are left out.
    pub(crate) place: String,
    pub(crate) theirs: String,
    pub(crate) ours: String,
}

/// The kinds of differences, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// One of them did not answer.
    Transport,
    /// The status code.
    Status,
    /// `reason` of a Status.
    Reason,
    /// `message` of a Status, and text that is no document.
    Message,
    Header,
    Body,
    /// The events of a watch.
    Watch,
    /// What is in their bytes does not survive being read and written by us.
    Protobuf,
    Discovery,
    OpenApi,
    /// Descriptions in OpenAPI.
    Description,
}

impl Class {
    pub(crate) const ALL: [Self; 11] = [
        Self::Transport,
        Self::Status,
        Self::Reason,
        Self::Message,
        Self::Header,
        Self::Body,
        Self::Watch,
        Self::Protobuf,
        Self::Discovery,
        Self::OpenApi,
        Self::Description,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::Status => "status",
            Self::Reason => "reason",
            Self::Message => "message",
            Self::Header => "header",
            Self::Body => "body",
            Self::Watch => "watch",
            Self::Protobuf => "protobuf",
            Self::Discovery => "discovery",
            Self::OpenApi => "openapi",
            Self::Description => "description",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How an answer is framed, and when, is not the API's.
const FRAMING: [&str; 5] = ["date", "content-length", "transfer-encoding", "connection", "trailer"];

/// The two answers to one step, each with the words that make it comparable.
pub(crate) struct Pair<'a> {
    pub(crate) step: &'a Step,
    pub(crate) theirs: (&'a Answer, &'a Masks),
    pub(crate) ours: (&'a Answer, &'a Masks),
}

impl Pair<'_> {
    /// Every difference. A different status code stands for everything that follows from it.
    pub(crate) fn differences(&self) -> Vec<Difference> {
        let theirs = self.theirs.0;
        let ours = self.ours.0;
        if theirs.status == 0 || ours.status == 0 {
            return if theirs.status == ours.status {
                Vec::new()
            } else {
                vec![self.difference(Class::Transport, "", said(self.theirs), said(self.ours))]
            };
        }
        if theirs.status != ours.status {
            return vec![self.difference(Class::Status, "", said(self.theirs), said(self.ours))];
        }
        let mut found = self.headers();
        found.extend(self.bodies());
        if theirs.header("content-type").contains("protobuf")
            && let Some((theirs, ours)) = content::lost(&theirs.body)
        {
            for leaf in tree::differences(&theirs, &ours, false) {
                let difference =
                    self.difference(Class::Protobuf, &leaf.place, leaf.theirs, leaf.ours);
                found.push(difference);
            }
        }
        found
    }

    fn headers(&self) -> Vec<Difference> {
        let theirs = &self.theirs.0.headers;
        let ours = &self.ours.0.headers;
        let mut names: Vec<&String> = theirs.keys().chain(ours.keys()).collect();
        names.sort();
        names.dedup();
        let mut found = Vec::new();
        for name in names.into_iter().filter(|name| !FRAMING.contains(&name.as_str())) {
            let shown = |(answer, masks): (&Answer, &Masks)| {
                let values = answer.headers.get(name)?;
                let masked = values.iter().map(|value| masks.header(name, value));
                Some(masked.collect::<Vec<_>>().join(" | "))
            };
            let theirs = shown(self.theirs);
            let ours = shown(self.ours);
            if theirs != ours {
                let absent = || "absent".to_owned();
                let theirs = theirs.unwrap_or_else(absent);
                let ours = ours.unwrap_or_else(absent);
                found.push(self.difference(Class::Header, name, theirs, ours));
            }
        }
        found
    }

    fn bodies(&self) -> Vec<Difference> {
        let is_watch = self.step.role == Role::Watch;
        let read =
            |(answer, masks): (&Answer, &Masks)| masked(Content::of(answer, is_watch), masks);
        match (read(self.theirs), read(self.ours)) {
            (Content::Document(mut theirs), Content::Document(mut ours)) => {
                if self.step.subject != Subject::Objects {
                    without_runs(&mut theirs);
                    without_runs(&mut ours);
                }
                self.documents(&theirs, &ours)
            }
            (Content::Events(theirs), Content::Events(ours)) => self.events(&theirs, &ours),
            (theirs, ours) if theirs == ours => Vec::new(),
            (Content::Text(theirs), Content::Text(ours)) => {
                vec![self.difference(Class::Message, "", theirs, ours)]
            }
            (theirs, ours) => {
                let [theirs, ours] = [theirs, ours].map(|content| format!("{content:?}"));
                vec![self.difference(Class::Body, "", theirs, ours)]
            }
        }
    }

    fn documents(&self, theirs: &Value, ours: &Value) -> Vec<Difference> {
        let is_status = theirs["kind"] == "Status" && theirs["apiVersion"] == "v1";
        let mut found = Vec::new();
        let by_name = self.step.subject != Subject::Objects;
        for leaf in tree::differences(theirs, ours, by_name) {
            let class = match (self.step.subject, leaf.place.as_str()) {
                (Subject::Objects, "reason") if is_status => Class::Reason,
                (Subject::Objects, "message") if is_status => Class::Message,
                (Subject::Objects, _) => Class::Body,
                (Subject::Discovery, _) => Class::Discovery,
                (Subject::OpenApi, place) if place.ends_with("description") => Class::Description,
                (Subject::OpenApi, _) => Class::OpenApi,
            };
            found.push(self.difference(class, &leaf.place, leaf.theirs, leaf.ours));
        }
        if self.step.subject == Subject::Discovery {
            found.extend(self.order());
        }
        found
    }

    /// Some clients match the text of discovery documents, so their order counts.
    fn order(&self) -> Option<Difference> {
        let theirs = &self.theirs.0.body;
        let ours = &self.ours.0.body;
        let (theirs, ours) = tree::order(theirs, ours)?;
        Some(self.difference(Class::Discovery, "order of keys", theirs, ours))
    }

    fn events(&self, theirs: &[Value], ours: &[Value]) -> Vec<Difference> {
        let types = |events: &[Value]| {
            let types = events.iter().map(|event| {
                let message = event["object"]["message"].as_str().unwrap_or_default();
                format!("{} {message}", event["type"].as_str().unwrap_or("?")).trim_end().to_owned()
            });
            types.collect::<Vec<_>>().join(" ")
        };
        let kept = |events: &[Value]| -> Vec<Value> {
            events.iter().filter(|event| !is_plain_bookmark(event)).cloned().collect()
        };
        let theirs = kept(theirs);
        let ours = kept(ours);
        if types(&theirs) != types(&ours) {
            return vec![self.difference(Class::Watch, "types", types(&theirs), types(&ours))];
        }
        let mut found = Vec::new();
        for (theirs, ours) in theirs.iter().zip(&ours) {
            let event = theirs["type"].as_str().unwrap_or_default();
            for leaf in tree::differences(&theirs["object"], &ours["object"], false) {
                let place = format!("{event} {}", leaf.place);
                found.push(self.difference(Class::Watch, &place, leaf.theirs, leaf.ours));
            }
        }
        found
    }

    fn difference(&self, class: Class, place: &str, theirs: String, ours: String) -> Difference {
        Difference { id: self.step.id.clone(), class, place: place.into(), theirs, ours }
    }
}

/// A bookmark that only tells a version comes when a server likes.
fn is_plain_bookmark(event: &Value) -> bool {
    let annotations = &event["object"]["metadata"]["annotations"];
    event["type"] == "BOOKMARK" && annotations["k8s.io/initial-events-end"].is_null()
}

fn masked(content: Content, masks: &Masks) -> Content {
    match content {
        Content::Document(mut document) => {
            masks.document(&mut document);
            Content::Document(document)
        }
        Content::Events(mut events) => {
            events.iter_mut().for_each(|event| masks.document(event));
            Content::Events(events)
        }
        Content::Text(text) => Content::Text(masks.text(&text)),
    }
}

/// The status code, and what an error says.
fn said((answer, masks): (&Answer, &Masks)) -> String {
    let text = match masked(Content::of(answer, false), masks) {
        Content::Document(document) => match document["message"].as_str() {
            Some(message) if document["kind"] == "Status" => message.to_owned(),
            _ => document["kind"].as_str().unwrap_or_default().to_owned(),
        },
        Content::Text(text) => text,
        Content::Events(_) => String::new(),
    };
    format!("{} {text}", answer.status)
}

#[cfg(test)]
mod tests;
