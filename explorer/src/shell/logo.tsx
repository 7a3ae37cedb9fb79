export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
      <path d="M9 10 22 8M9 10l8 14M22 8l-5 16" fill="none" stroke="currentColor" stroke-width="2" opacity="0.55" />
      <circle cx="9" cy="10" r="5" fill="currentColor" />
      <circle cx="23" cy="8" r="4" fill="currentColor" opacity="0.75" />
      <circle cx="17" cy="24" r="4.5" fill="currentColor" />
    </svg>
  );
}
