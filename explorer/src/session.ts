/** Who asks. The token lives as long as the tab; a link may bring one behind `#token=`, which is taken off the address at once. */
const KEY = "omnigraph.token";

export function takeTokenFromAddress(): void {
  const found = /^#token=([^&]+)(?:&(.*))?$/.exec(location.hash);
  if (!found) return;
  saveToken(decodeURIComponent(found[1] ?? ""));
  history.replaceState(null, "", `#${found[2] ?? ""}`);
}

export function savedToken(): string | null {
  return sessionStorage.getItem(KEY);
}

export function saveToken(token: string | null): void {
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
}
