//! One client: one connection that is kept.

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::Fallible;
use crate::server::Server;

pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    token: String,
}

impl Client {
    #[expect(clippy::disallowed_methods, reason = "the server that it started")]
    pub(crate) async fn connect(server: &Server) -> Fallible<Self> {
        let stream = TcpStream::connect(server.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self {
            sender,
            host: server.address.to_string(),
            token: server.token.clone(),
        })
    }

    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Fallible<(StatusCode, Value)> {
        let bytes = body.map(Value::to_string).unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("Host", &self.host)
            .header("Authorization", format!("Bearer {}", self.token));
        if body.is_some() {
            request = request.header("Content-Type", "application/json");
        }
        let request = request.body(Full::new(Bytes::from(bytes)))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let bytes = response.into_body().collect().await?.to_bytes();
        let value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Ok((status, value))
    }

    /// Changes the limits of the server.
    pub(crate) async fn settings(&mut self, settings: &Value) -> Fallible {
        let (status, body) = self
            .send(Method::PATCH, "/v1/settings", Some(settings))
            .await?;
        if status != StatusCode::OK {
            return Err(format!("settings: {status} {body}").into());
        }
        Ok(())
    }
}
