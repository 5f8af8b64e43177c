import type { ServerTransport } from '../config.ts';
import type { SwitchboardError } from '../errors.ts';
import type { Channel, Receiver } from './channel.ts';
import type { Hosts } from './hosted.ts';
import type { ChildRecord } from './stdio.ts';

export type OpenChannel = (receiver: Receiver) => Channel;

/** Returns what opens a channel of this kind, once it may be opened. The code of each kind is loaded with its first server. */
export async function channelOpener(
  transport: ServerTransport,
  maxMessageBytes: number,
  children: ChildRecord,
  hosts: Hosts,
): Promise<OpenChannel> {
  switch (transport.type) {
    case 'stdio': {
      const { StdioChannel } = await import('./stdio.ts');
      await children.turn();
      return (receiver) => new StdioChannel(transport, maxMessageBytes, children, receiver);
    }
    case 'http': {
      const { HttpChannel } = await import('./http.ts');
      return (receiver) => new HttpChannel(transport, maxMessageBytes, receiver);
    }
    case 'hosted':
      return hostedOpener(transport.id, maxMessageBytes, hosts);
    case 'sse': {
      const { SseChannel } = await import('./sse.ts');
      return (receiver) => new SseChannel(transport, maxMessageBytes, receiver);
    }
  }
}

async function hostedOpener(id: string, maxMessageBytes: number, hosts: Hosts): Promise<OpenChannel> {
  const attachment = await hosts.attach(id);
  if (attachment.kind === 'url') {
    const { HttpChannel } = await import('./http.ts');
    const target = { url: attachment.url, headers: {} };
    return (receiver) =>
      closedWhenEnded(new HttpChannel(target, maxMessageBytes, receiver), attachment.ended);
  }
  const { HostedChannel } = await import('./hosted.ts');
  return (receiver) =>
    closedWhenEnded(new HostedChannel(attachment, maxMessageBytes, receiver), attachment.ended);
}

/** An instance may outlive many channels, and must not keep them in memory. */
function closedWhenEnded<T extends Channel & { serverEnded(error: SwitchboardError): void }>(
  channel: T,
  ended: Promise<SwitchboardError>,
): T {
  const weak = new WeakRef(channel);
  void ended.then((error) => weak.deref()?.serverEnded(error));
  return channel;
}
