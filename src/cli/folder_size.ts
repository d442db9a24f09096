/** What a folder holds, subfolders included. */
export interface FolderSize {
  /** Bytes of its files; links are not followed. */
  bytes: number;
  /** Whether some folder or file could not be looked at. */
  isPartial: boolean;
}

/**
 * Adds up the sizes of all files in a folder, however deep.
 *
 * @param path The folder.
 * @throws {Deno.errors.NotFound | Deno.errors.PermissionDenied} If the folder itself cannot be looked at.
 */
export async function folderSize(path: string): Promise<FolderSize> {
  const size: FolderSize = { bytes: 0, isPartial: false };
  const folders: string[] = [];
  for await (const entry of Deno.readDir(path)) {
    const place = `${path}/${entry.name}`;
    if (entry.isDirectory) folders.push(place);
    else if (entry.isFile) {
      // One that disappears meanwhile, such as a download that ends, does not count.
      size.bytes += await Deno.lstat(place).then((info) => info.size, () => 0);
    }
  }
  for (const folder of folders) {
    try {
      const inner = await folderSize(folder);
      size.bytes += inner.bytes;
      size.isPartial ||= inner.isPartial;
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) size.isPartial = true;
    }
  }
  return size;
}
