import type { Outlet } from './caller.ts';

/** For what has no client just now, or no answer at all. */
export const nowhere: Outlet = {
  event() {},
  answer() {},
  end() {},
  pause() {},
  keepAlive() {},
  isBatch: false,
  takesEvents: true,
};
