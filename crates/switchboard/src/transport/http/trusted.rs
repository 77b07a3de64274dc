//! Certificates that an entry names: authorities, and certificates that servers present themselves.
//!
//! Owns the one case that the verifier below cannot express. A self-signed certificate made with the usual commands says
//! of itself that it is an authority, and a verifier refuses to take an authority for a server, even a trusted one. Where
//! the server presents exactly a certificate that the entry names, that objection does not count; its name and its dates
//! still do, and the server still proves that it has the key.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// What the verifier below says of an authority that presents itself as a server.
const AUTHORITY_AS_SERVER: &str = "CaUsedAsEndEntity";

/// Trusts what the verifier below trusts, and servers that present a named certificate.
#[derive(Debug)]
pub(super) struct Trusted<V> {
    pub(super) below: V,
    pub(super) named: Vec<CertificateDer<'static>>,
}

/// Whether a certificate was refused only because it says of itself that it is an authority. Dates are looked at before
/// that is.
pub(super) fn is_authority_as_server(error: &CertificateError) -> bool {
    let CertificateError::Other(other) = error else {
        return false;
    };
    other.0.to_string() == AUTHORITY_AS_SERVER
}

impl<V: ServerCertVerifier> ServerCertVerifier for Trusted<V> {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.below.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(Error::InvalidCertificate(error))
                if is_authority_as_server(&error) && self.named.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.below
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.below
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.below.supported_verify_schemes()
    }
}
