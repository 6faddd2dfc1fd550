// An issuer of tokens for one web interface: `node issuer.mjs BASE SECONDS`.
//
// It is oidc-provider, which is certified for OpenID Connect. Its access tokens are JWTs for
// "rabbitmq" that live for SECONDS. It prints its address when it can be asked.
import { createServer } from "node:http";
import Provider from "oidc-provider";

const [base, seconds] = process.argv.slice(2);
const RIGHTS = "rabbitmq.tag:administrator rabbitmq.read:*/* rabbitmq.write:*/* rabbitmq.configure:*/*";

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "harebell",
        token_endpoint_auth_method: "none",
        grant_types: ["authorization_code", "refresh_token"],
        redirect_uris: [`${base}js/oidc-oauth/login-callback.html`],
        post_logout_redirect_uris: [`${base}js/oidc-oauth/logout-callback.html`],
      },
    ],
    scopes: ["openid", "offline_access", ...RIGHTS.split(" ")],
    clientBasedCORS: (_ctx, origin) => base.startsWith(`${origin}/`),
    issueRefreshToken: () => true,
    pkce: { required: () => true },
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    features: {
      resourceIndicators: {
        enabled: true,
        defaultResource: () => "urn:rabbitmq",
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: RIGHTS,
          audience: "rabbitmq",
          accessTokenFormat: "jwt",
          accessTokenTTL: Number(seconds),
        }),
      },
    },
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
