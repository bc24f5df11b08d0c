import { useEffect, useRef, useState } from "preact/hooks";
import { login, loginNeeded } from "../session";

/** Asks for the bearer token that the console's authenticator wants. */
export function Login() {
  const [text, setText] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const wrong = loginNeeded.value === "refused";
  return (
    <main id="main" class="login">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim()) login(text);
        }}
      >
        <h1>GPU console</h1>
        <p>This console wants a token. It is kept in this tab until the tab is closed.</p>
        {/* A user name for password managers, which otherwise make one up. */}
        <input class="vh" type="text" name="username" autocomplete="username" value="gpu-console" readOnly tabIndex={-1} aria-hidden="true" />
        <label for="token">Token</label>
        <input
          id="token"
          ref={field}
          type="password"
          autocomplete="current-password"
          spellcheck={false}
          aria-invalid={wrong}
          aria-describedby={wrong ? "token-wrong" : undefined}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        {wrong && (
          <p id="token-wrong" class="wrong" role="alert">
            The server does not accept this token.
          </p>
        )}
        <button type="submit" class="button primary" disabled={!text.trim()}>
          Log in
        </button>
      </form>
    </main>
  );
}
