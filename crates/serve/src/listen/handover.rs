//! A connection that goes on as something else than HTTP. The handler that agrees to it says with
//! its answer what becomes of it, and gets it once that answer is out.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Wire for S {}

/// What is left of the connection: its two ends, and what the client said already.
pub(crate) struct Line {
    pub(crate) wire: Box<dyn Wire>,
    pub(crate) early: Bytes,
}

type Going = Pin<Box<dyn Future<Output = ()> + Send>>;
type GoOn = Box<dyn FnOnce(Line) -> Going + Send>;

/// An extension of the answer 101.
#[derive(Clone, Default)]
pub(crate) struct Handover(Arc<Mutex<Option<GoOn>>>);

impl Handover {
    pub(crate) fn new<F>(go_on: impl FnOnce(Line) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let go_on: GoOn = Box::new(move |line| Box::pin(go_on(line)));
        Self(Arc::new(Mutex::new(Some(go_on))))
    }

    /// From the answer to the connection that sends it.
    pub(super) fn pass(&self, to: &Self) {
        let go_on = self.take();
        *to.0.lock().unwrap_or_else(PoisonError::into_inner) = go_on;
    }

    pub(super) fn take(&self) -> Option<GoOn> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
