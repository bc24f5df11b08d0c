import { signal } from "@preact/signals";

/**
 * The bearer token, where the server wants one. It lives in this tab's session
 * alone: a closed tab forgets it, and no other site and no other tab sees it.
 */
const key = "gpu-console.token";

function stored(): string {
  try {
    return sessionStorage.getItem(key) ?? "";
  } catch {
    return ""; // storage is switched off
  }
}

export const token = signal(stored());

/** Whether the server refused the last request for want of a valid token. */
export const loginNeeded = signal<"no" | "needed" | "refused">("no");

export function login(value: string): void {
  token.value = value.trim();
  loginNeeded.value = "no";
  try {
    sessionStorage.setItem(key, token.value);
  } catch {
    // It is kept in memory then.
  }
}

/** The server answered 401: asks for a token, and says so if one was refused. */
export function refused(): void {
  loginNeeded.value = token.value ? "refused" : "needed";
}

export function logout(): void {
  token.value = "";
  loginNeeded.value = "needed";
  try {
    sessionStorage.removeItem(key);
  } catch {
    // There is nothing to remove.
  }
}
