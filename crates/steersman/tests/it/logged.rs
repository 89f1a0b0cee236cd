//! What is logged while a test runs.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};

use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Level};

/// What was logged since this began, on the thread of the test.
pub(crate) struct Logged {
    text: Text,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

/// As long as there is only one subscriber, tracing asks that of whichever thread comes by a log
/// line first whether anybody wants it, and believes it for all threads. With two it asks all.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));

impl Logged {
    pub(crate) fn begin() -> Self {
        LazyLock::force(&SECOND);
        let text = Text::default();
        let writer = text.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(Level::DEBUG)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        Self { text, _guard: tracing::subscriber::set_default(subscriber) }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.text.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Text {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
