//! A webhook that is asked whose a token is that nobody here knows.
//!
//! What it answers is remembered for a while, by the token's hash. When it cannot be asked, or
//! does not answer, the token is refused, as kube-apiserver does.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_store::Store;

use crate::token::ISSUER;
use crate::user::User;
use crate::webhook_client::{Answers, Inquiry, Key, Origins, Target, WebhookEndpoint};

/// How long one question may take.
const TIME_MAX: Duration = Duration::from_secs(30);
/// After how long it is asked again at first.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);

/// Who is asked, and how.
#[derive(Clone, Debug)]
pub struct TokenWebhook {
    /// Where it is.
    pub endpoint: WebhookEndpoint,
    /// Which version of TokenReviews it is sent.
    pub version: TokenReviewVersion,
    /// How long an answer counts; not at all if this is zero.
    pub cache_ttl: Duration,
}

/// A version of TokenReviews. All have the same fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenReviewVersion {
    /// `authentication.k8s.io/v1`
    V1,
    /// `authentication.k8s.io/v1beta1`, which kube-apiserver speaks unless it is told otherwise.
    #[default]
    V1Beta1,
}

impl TokenWebhook {
    /// A webhook that is asked as kube-apiserver asks it by default.
    pub fn at(endpoint: WebhookEndpoint) -> Self {
        let cache_ttl = Duration::from_secs(120);
        Self { endpoint, version: TokenReviewVersion::default(), cache_ttl }
    }
}

impl TokenReviewVersion {
    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "authentication.k8s.io/v1",
            Self::V1Beta1 => "authentication.k8s.io/v1beta1",
        }
    }
}

/// Whose a token is, and for which of the audiences that were asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    pub(crate) user: Arc<User>,
    pub(crate) audiences: Vec<String>,
}

/// The webhook that is asked.
pub(crate) struct Asked {
    settings: TokenWebhook,
    target: Target,
    /// Whom it knew, by token and audiences.
    known: Answers<Known>,
    /// Whose tokens it did not know: apart, or whoever makes up tokens would drive out the others.
    unknown: Answers<()>,
}

impl Asked {
    pub(crate) fn new(settings: &TokenWebhook) -> Self {
        let WebhookEndpoint { url, authorities, identity, .. } = settings.endpoint.clone();
        let target = Target::at(&url, authorities).showing(identity);
        let settings = settings.clone();
        Self { settings, target, known: Answers::default(), unknown: Answers::default() }
    }

    /// Whose a token is for one of these audiences; nobody's, or why that is not known.
    pub(crate) async fn user(
        &self,
        token: &str,
        audiences: &[String],
        store: &dyn Store,
        origins: &Origins,
    ) -> Result<Option<Known>, String> {
        let key = key_of(token, audiences);
        if let Some(known) = self.recalled(&key) {
            return Ok(known);
        }
        let review = json!({
            "apiVersion": self.settings.version.api_version(),
            "kind": "TokenReview",
            "metadata": {},
            "spec": {"token": token, "audiences": audiences},
            "status": {"user": {}},
        });
        let answer = self.ask(&review, store, origins).await?;
        let known = self.known(&answer, audiences)?;
        self.remember(key, known.clone());
        Ok(known)
    }

    /// Asks again, ever later, whom it would help to ask again.
    async fn ask(
        &self,
        review: &Value,
        store: &dyn Store,
        origins: &Origins,
    ) -> Result<Value, String> {
        let inquiry = Inquiry {
            target: &self.target,
            token: self.settings.endpoint.token.as_deref(),
            review,
            within: TIME_MAX,
            pause: BACKOFF_FIRST,
        };
        origins.inquire(store, inquiry).await.map_err(|error| {
            tracing::warn!(%error, "the authentication webhook cannot be asked");
            error.to_string()
        })
    }

    /// What an answer says.
    fn known(&self, answer: &Value, wanted: &[String]) -> Result<Option<Known>, String> {
        let expected = self.settings.version.api_version();
        if answer["kind"] != "TokenReview" || answer["apiVersion"] != expected {
            return Err(format!(
                "the authentication webhook answered no TokenReview of {expected}"
            ));
        }
        let status = &answer["status"];
        let texts = status["audiences"].as_array().into_iter().flatten();
        let mut given: Vec<&str> = texts.filter_map(Value::as_str).collect();
        if given.is_empty() {
            given.push(ISSUER); // who names no audience knows of none but this server
        }
        let counts = |audience: &&String| given.contains(&audience.as_str());
        let audiences: Vec<String> = wanted.iter().filter(counts).cloned().collect();
        let error = status["error"].as_str().filter(|error| !error.is_empty());
        if status["authenticated"] == true && !audiences.is_empty() {
            let user = Arc::new(User::of_info(&status["user"]).authenticated());
            return Ok(Some(Known { user, audiences }));
        }
        match error {
            Some(error) => Err(error.to_owned()),
            None => Ok(None),
        }
    }

    /// What is remembered of a token.
    fn recalled(&self, key: &Key) -> Option<Option<Known>> {
        let known = self.known.recall(key).map(Some);
        known.or_else(|| self.unknown.recall(key).map(|()| None))
    }

    fn remember(&self, key: Key, known: Option<Known>) {
        let lasts = self.settings.cache_ttl;
        match known {
            Some(known) => self.known.keep(key, known, lasts),
            None => self.unknown.keep(key, (), lasts),
        }
    }
}

fn key_of(token: &str, audiences: &[String]) -> Key {
    // With lengths, or other texts could be put together to the same.
    let mut text = format!("{}:{token}", token.len());
    for audience in audiences {
        text.push_str(&format!("{}:{audience}", audience.len()));
    }
    Key::of(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        Asked::new(&TokenWebhook::at(WebhookEndpoint::at("https://whoami.test")))
    }

    fn known(name: &str) -> Option<Known> {
        let user = Arc::new(User { name: name.to_owned(), ..User::default() });
        Some(Known { user, audiences: Vec::new() })
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_for_a_while() {
        let asked = asked();
        let key = |number: usize| key_of(&number.to_string(), &[]);
        asked.remember(key(0), known("ada"));
        asked.remember(key(1), None);
        assert_eq!(asked.recalled(&key(0)), Some(known("ada")));
        assert_eq!(asked.recalled(&key(1)), Some(None), "that it is nobody's is known as well");
        assert_eq!(asked.recalled(&key(2)), None);
        tokio::time::advance(Duration::from_secs(119)).await;
        // Whoever makes up tokens drives out nobody who is known.
        for number in 2..10_000 {
            asked.remember(key(number), None);
            assert!(asked.recalled(&key(number)).is_some());
        }
        assert_eq!(asked.recalled(&key(0)), Some(known("ada")));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(asked.recalled(&key(0)), None);
    }

    #[test]
    fn tokens_and_audiences_are_told_apart() {
        let texts = |texts: &[&str]| texts.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        assert_ne!(key_of("a", &texts(&["b"])), key_of("a1:b", &[]));
        assert_ne!(key_of("a", &texts(&["b", "c"])), key_of("a", &texts(&["bc"])));
    }
}
