//! Answers each request: access control, then the path and its profile, then the endpoint.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming as RequestBody;
use hyper::header::ORIGIN;
use hyper::http::request::Parts;
use hyper::{Method as Verb, Request, StatusCode};
use tokio::time::sleep;

use super::admission::Place;
use super::answer::{self, BoxedResponse};
use super::endpoint::{Endpoint, shutting_down};
use super::grant::Grant;
use super::health;
use super::legacy_sse;
use super::websocket::{self, Upgrade};

/// Interval of looking for tokens that are no longer valid.
const ACCESS_INTERVAL: Duration = Duration::from_millis(500);

/// Path for WebSocket clients.
const WEBSOCKET: &str = "/ws";

enum Path {
    Streamable,
    LegacyStream,
    LegacyMessages,
    WebSocket,
}

impl Endpoint {
    /// Answers a request on the connection that holds `place`. After the answer, the connection is used for `upgrade`,
    /// if that is set.
    pub(super) async fn respond(
        &self,
        request: Request<RequestBody>,
        place: &Place,
        upgrade: &Upgrade,
    ) -> BoxedResponse {
        let (mut head, mut body) = request.into_parts();
        let checked = self.access.check(&head).await;
        if let Some(answer) = health::answer(&head, checked.is_ok(), &*self.handler) {
            return answer;
        }
        let (mut answer, origin) = match checked {
            Ok(_) if !place.admit().await => {
                let why = "the server has too many connections; try again later";
                (answer::closing(answer::unavailable(why)), true)
            }
            Ok(grant) => {
                let answered = self.route(grant, &mut head, &mut body, upgrade).await;
                (answered.unwrap_or_else(|refused| refused), true)
            }
            Err(refused) => {
                let was_let_in = refused.status() != StatusCode::FORBIDDEN
                    && refused.status() != StatusCode::MISDIRECTED_REQUEST;
                // Closed so that a client without a valid token cannot make further attempts on this connection.
                let is_refused = refused.status().is_client_error();
                let refused = if is_refused {
                    answer::closing(refused)
                } else {
                    refused
                };
                (refused, was_let_in)
            }
        };
        let origin = head.headers.get(ORIGIN).filter(|_| origin);
        self.access.share(origin, &mut answer);
        answer
    }

    /// Refusals are returned as errors only to shorten the code.
    async fn route(
        &self,
        mut grant: Grant,
        head: &mut Parts,
        body: &mut RequestBody,
        upgrade: &Upgrade,
    ) -> Result<BoxedResponse, BoxedResponse> {
        let (route, profile) = self.find(head.uri.path()).ok_or_else(|| self.not_found())?;
        self.choose_profile(&mut grant, profile)?;
        if head.method == Verb::POST {
            grant.running = Some(Arc::new(self.quotas.begin(&grant.principal)?));
        }
        if head.method == Verb::GET && self.stop.is_draining() {
            return Err(shutting_down());
        }
        match (route, &head.method) {
            (Path::Streamable, &Verb::POST) => self.post(&grant, head, body).await,
            (Path::Streamable, &Verb::GET) => self.listen(&grant, &head.headers),
            (Path::Streamable, &Verb::DELETE) => self.end_session(&grant, &head.headers),
            (Path::Streamable, _) => Err(answer::not_allowed(
                "POST, GET, DELETE",
                "the endpoint accepts POST, GET and DELETE",
            )),
            (Path::LegacyStream, &Verb::GET) => self.open_stream(&grant, &head.headers),
            (Path::LegacyStream, _) => Err(answer::not_allowed(
                "GET",
                "GET opens the stream of a client",
            )),
            (Path::LegacyMessages, &Verb::POST) => self.take_message(&grant, head, body).await,
            (Path::LegacyMessages, _) => {
                Err(answer::not_allowed("POST", "messages are sent with POST"))
            }
            (Path::WebSocket, &Verb::GET) => websocket::accept(
                head,
                &grant,
                Arc::clone(&self.handler),
                &self.options.limits,
                &self.stop,
                upgrade,
            ),
            (Path::WebSocket, _) => {
                Err(answer::not_allowed("GET", "a WebSocket is opened with GET"))
            }
        }
    }

    /// The route of a path, and the profile that it names.
    fn find<'p>(&self, path: &'p str) -> Option<(Path, Option<&'p str>)> {
        if path == legacy_sse::MESSAGES {
            return Some((Path::LegacyMessages, None));
        }
        let routes = [
            (self.options.path.as_str(), Path::Streamable),
            (legacy_sse::STREAM, Path::LegacyStream),
            (WEBSOCKET, Path::WebSocket),
        ];
        routes.into_iter().find_map(|(prefix, route)| {
            let rest = path.strip_prefix(prefix)?;
            let profile = match rest {
                "" => None,
                _ => Some(rest.strip_prefix('/')?),
            };
            Some((route, profile))
        })
    }

    /// The number of requests that are running, also of clients that have lost their connection.
    pub(super) fn running(&self) -> usize {
        let detached = self.sessions.running() + self.sse.running();
        self.quotas.running().max(detached)
    }

    /// Ends the sessions of clients that lose access.
    pub(super) async fn follow_access(&self) -> Infallible {
        if !self.access.can_end() {
            return pending().await;
        }
        loop {
            sleep(ACCESS_INTERVAL).await;
            self.access.refresh().await;
            self.sessions.end_idle();
        }
    }

    /// Sets the profile that the request uses. A client that is bound to a profile cannot learn which others exist.
    pub(super) fn choose_profile(
        &self,
        grant: &mut Grant,
        wanted: Option<&str>,
    ) -> Result<(), BoxedResponse> {
        match (&grant.profile, wanted) {
            (Some(own), Some(wanted)) if **own != *wanted => {
                return Err(answer::refuse(
                    StatusCode::FORBIDDEN,
                    "the token is for another profile",
                ));
            }
            (None, Some(wanted)) => grant.profile = Some(Arc::from(wanted)),
            _ => {}
        }
        match &grant.profile {
            Some(profile) if !self.handler.has_profile(profile) => Err(answer::refuse(
                StatusCode::NOT_FOUND,
                "unknown profile: it is not configured",
            )),
            _ => Ok(()),
        }
    }

    fn not_found(&self) -> BoxedResponse {
        let why = format!("not found; the endpoint is {}", self.options.path);
        answer::refuse(StatusCode::NOT_FOUND, why)
    }
}
