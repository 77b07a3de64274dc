//! Token grants without user interaction: client credentials, enterprise-managed authorization, workload identity.

use switchboard_config::secret::Secret;
use switchboard_store::Clock;
use url::Url;

use super::challenge::{Challenge, union};
use super::client::{configured, uses_dpop};
use super::discovery::{Discovered, discover};
use super::error::LoginErrorKind;
use super::fetch::{Fetcher, shown};
use super::jose::ProofKey;
use super::login::scopes;
use super::record::{self, Client, ClientAuth};
use super::server::{AuthSettings, Grant, ProtectedServer, SecretSource};
use super::token::TokenEndpoint;

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// Obtains a token for a server, with `more` added to the usual scopes.
pub(super) async fn obtain(
    fetcher: &Fetcher,
    server: &ProtectedServer,
    challenge: &Challenge,
    more: &[String],
    clock: &dyn Clock,
) -> Result<record::Login, LoginErrorKind> {
    let settings = server.settings();
    let found = discover(fetcher, server, challenge).await?;
    let scopes = union(&scopes(settings, challenge, &found), more);
    let client = match (configured(settings, &found), &settings.grant) {
        (Some(client), _) => client,
        // The platform's token identifies the client, so a client id is optional.
        (None, Grant::WorkloadIdentity { .. }) => Client {
            id: String::new(),
            secret: None,
            method: ClientAuth::None,
            redirect_uri: None,
            expires_at: None,
        },
        (None, _) => return Err(LoginErrorKind::NoClient),
    };
    let proof_key = if uses_dpop(&found, settings.dpop) {
        Some(ProofKey::generate()?)
    } else {
        None
    };
    let (grant, assertion) = match &settings.grant {
        Grant::AuthorizationCode => return Err(LoginErrorKind::NoClient),
        Grant::ClientCredentials => ("client_credentials", None),
        Grant::WorkloadIdentity { assertion } => (JWT_BEARER, Some(assertion.read().await?)),
        Grant::EnterpriseManaged {
            token_endpoint,
            client_id,
            client_secret,
            id_token,
        } => {
            let provider = Provider {
                token_endpoint,
                client_id: client_id.as_deref().unwrap_or(&client.id),
                client_secret: client_secret.as_ref(),
                id_token,
            };
            let vouched = provider.vouch(fetcher, settings, &found, &scopes, clock);
            (JWT_BEARER, Some(vouched.await?))
        }
    };
    let scope = scopes.join(" ");
    let mut form = vec![("grant_type", grant), ("resource", &found.resource)];
    if let Some(assertion) = &assertion {
        form.push(("assertion", assertion.expose()));
    }
    if !scope.is_empty() {
        form.push(("scope", &scope));
    }
    let endpoint = TokenEndpoint {
        fetcher,
        reach: &found.reach,
        url: &found.endpoints.token,
        issuer: &found.issuer,
        client: &client,
        settings,
        proof_key: proof_key.as_ref(),
        must_bind: settings.dpop == Some(true),
        clock,
    };
    let tokens = endpoint.ask(&form).await?;
    Ok(record::Login {
        access_token: tokens.access_token,
        is_bound: tokens.is_bound,
        expires_at: tokens.expires_at,
        obtained_at: tokens.obtained_at,
        // The grant can be repeated, so no refresh token is stored.
        refresh_token: None,
        scopes,
        proof_key: proof_key.as_ref().map(|key| key.stored().clone()),
        issuer: found.issuer,
        resource: found.resource,
        token_endpoint: found.endpoints.token,
        revocation_endpoint: found.endpoints.revocation,
        client,
    })
}

/// Identity provider of an enterprise.
struct Provider<'p> {
    token_endpoint: &'p Url,
    client_id: &'p str,
    client_secret: Option<&'p Secret>,
    id_token: &'p SecretSource,
}

impl Provider<'_> {
    /// Exchanges the user's ID token for one that the server's authorization server accepts (RFC 8693).
    async fn vouch(
        &self,
        fetcher: &Fetcher,
        settings: &AuthSettings,
        found: &Discovered,
        scopes: &[String],
        clock: &dyn Clock,
    ) -> Result<Secret, LoginErrorKind> {
        let client = Client {
            id: self.client_id.to_owned(),
            secret: self.client_secret.cloned(),
            method: match self.client_secret {
                Some(_) => ClientAuth::ClientSecretBasic,
                None => ClientAuth::None,
            },
            redirect_uri: None,
            expires_at: None,
        };
        let endpoint = TokenEndpoint {
            fetcher,
            reach: &found.reach,
            url: self.token_endpoint,
            issuer: self.token_endpoint.as_str(),
            client: &client,
            settings,
            proof_key: None,
            must_bind: false,
            clock,
        };
        let token = self.id_token.read().await?;
        let scope = scopes.join(" ");
        let mut form = vec![
            ("grant_type", TOKEN_EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("audience", found.issuer.as_str()),
            ("resource", found.resource.as_str()),
            ("subject_token", token.expose()),
            ("subject_token_type", ID_TOKEN),
        ];
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        let tokens = endpoint.ask(&form).await?;
        if tokens.issued_type.as_deref() != Some(ID_JAG) {
            return Err(LoginErrorKind::Document {
                url: shown(self.token_endpoint),
                problem: "returned another type of token than requested".to_owned(),
            });
        }
        Ok(tokens.access_token)
    }
}
