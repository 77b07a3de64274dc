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
use super::endpoint::Endpoint;
use super::grant::Grant;

/// Interval of looking for tokens that are no longer valid.
const ACCESS_INTERVAL: Duration = Duration::from_millis(500);

impl Endpoint {
    /// Answers a request on the connection that holds `place`.
    pub(super) async fn respond(
        &self,
        request: Request<RequestBody>,
        place: &Place,
    ) -> BoxedResponse {
        let (head, mut body) = request.into_parts();
        let (mut answer, origin) = match self.access.check(&head).await {
            Ok(_) if !place.admit().await => {
                let why = "the server has too many connections; try again later";
                (answer::closing(answer::unavailable(why)), true)
            }
            Ok(grant) => {
                let answered = self.route(grant, &head, &mut body).await;
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
        head: &Parts,
        body: &mut RequestBody,
    ) -> Result<BoxedResponse, BoxedResponse> {
        let rest = head.uri.path().strip_prefix(self.options.path.as_str());
        let profile = match rest {
            Some("") => None,
            Some(rest) => Some(rest.strip_prefix('/').ok_or_else(|| self.not_found())?),
            None => return Err(self.not_found()),
        };
        self.choose_profile(&mut grant, profile)?;
        match head.method {
            Verb::POST => self.post(&grant, head, body).await,
            Verb::GET => self.listen(&grant, &head.headers),
            Verb::DELETE => self.end_session(&grant, &head.headers),
            _ => Err(answer::not_allowed(
                "POST, GET, DELETE",
                "the endpoint accepts POST, GET and DELETE",
            )),
        }
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
