/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "identity.h"
#include "node.h"
#include "run.h"

#define DRIVER      "bus/pci/drivers/mlx5_core"
#define LINKS       "../../../bus/pci/devices/" /* from below class/NAME/DEVICE */
#define NO_RESOURCE "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"

/* A tree that is being made; the first error sticks. */
struct tree {
	const char *folder;
	int error;
};

static void
make_folders(char *path, size_t from)
{
	char *slash;

	for (slash = strchr(path + from, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, 0755); /* what is wrong shows at the file */
		*slash = '/';
	}
}

static void
failed(struct tree *tree, const char *path)
{
	if (tree->error != 0)
		return;
	tree->error = -errno;
	say("%s cannot be made: %s", path, strerror(errno));
}

/* put(tree, value, format...): a file of that path, with that line. */
static void __attribute__((format(printf, 3, 4)))
put(struct tree *tree, const char *value, const char *format, ...)
{
	char path[PATH_MAX];
	size_t folder = snprintf(path, sizeof(path), "%s/", tree->folder);
	va_list arguments;
	FILE *f;

	va_start(arguments, format);
	vsnprintf(path + folder, sizeof(path) - folder, format, arguments);
	va_end(arguments);
	make_folders(path, folder);
	f = fopen(path, "w");
	if (f == NULL) {
		failed(tree, path);
		return;
	}
	fprintf(f, "%s\n", value);
	if (fclose(f) != 0)
		failed(tree, path);
}

static void __attribute__((format(printf, 3, 4)))
put_link(struct tree *tree, const char *target, const char *format, ...)
{
	char path[PATH_MAX];
	size_t folder = snprintf(path, sizeof(path), "%s/", tree->folder);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(path + folder, sizeof(path) - folder, format, arguments);
	va_end(arguments);
	make_folders(path, folder);
	if (symlink(target, path) < 0)
		failed(tree, path);
}

static void
put_pci(struct tree *tree, unsigned int index, bool netdev)
{
	char base[64], text[512];

	snprintf(base, sizeof(base), "bus/pci/devices/" IDENTITY_PCI, index);
	snprintf(text, sizeof(text), "0x%04x", IDENTITY_PCI_VENDOR);
	put(tree, text, "%s/vendor", base);
	put(tree, text, "%s/subsystem_vendor", base);
	snprintf(text, sizeof(text), "0x%04x", IDENTITY_PART_ID);
	put(tree, text, "%s/device", base);
	snprintf(text, sizeof(text), "0x%04x", IDENTITY_SUBSYSTEM);
	put(tree, text, "%s/subsystem_device", base);
	put(tree, "0x020000", "%s/class", base);
	put(tree, "0", "%s/max_vfs", base);
	put(tree, "0", "%s/numa_node", base);
	put(tree, NO_RESOURCE NO_RESOURCE NO_RESOURCE NO_RESOURCE NO_RESOURCE NO_RESOURCE,
		"%s/resource", base);
	snprintf(text, sizeof(text), "pci:v%08Xd%08Xsv%08Xsd%08Xbc02sc00i00", IDENTITY_PCI_VENDOR,
		IDENTITY_PART_ID, IDENTITY_PCI_VENDOR, IDENTITY_SUBSYSTEM);
	put(tree, text, "%s/modalias", base);
	snprintf(text, sizeof(text),
		"DRIVER=mlx5_core\nPCI_CLASS=20000\nPCI_ID=%04X:%04X\nPCI_SLOT_NAME=" IDENTITY_PCI,
		IDENTITY_PCI_VENDOR, IDENTITY_PART_ID, index);
	put(tree, text, "%s/uevent", base);
	put_link(tree, "../../drivers/mlx5_core", "%s/driver", base);
	if (netdev) {
		put(tree, "0x0", "%s/net/" IDENTITY_NETDEV "/dev_id", base, index);
		put(tree, "0", "%s/net/" IDENTITY_NETDEV "/dev_port", base, index);
	}
}

static void
put_infiniband(struct tree *tree, unsigned int index)
{
	char base[64], text[128];
	uint64_t guid = identity_guid(index);

	snprintf(base, sizeof(base), "class/infiniband/" IDENTITY_DEVICE, index);
	snprintf(text, sizeof(text), LINKS IDENTITY_PCI, index);
	put_link(tree, text, "%s/device", base);
	put(tree, "1: CA", "%s/node_type", base);
	put(tree, IDENTITY_FW_TEXT, "%s/fw_ver", base);
	put(tree, IDENTITY_BOARD, "%s/board_id", base);
	put(tree, "MT4119", "%s/hca_type", base);
	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
		(unsigned int)(guid >> 32) & 0xffff, (unsigned int)(guid >> 16) & 0xffff,
		(unsigned int)guid & 0xffff);
	put(tree, text, "%s/node_guid", base);
	put(tree, "4: ACTIVE", "%s/ports/1/state", base);
	put(tree, "Ethernet", "%s/ports/1/link_layer", base);
	put(tree, "0xffff", "%s/ports/1/pkeys/0", base);
	snprintf(text, sizeof(text), "fe80:0000:0000:0000:%04x:%04x:%04x:%04x",
		((unsigned int)(guid >> 48) ^ 0x0200) & 0xffff, (unsigned int)(guid >> 32) & 0xffff,
		(unsigned int)(guid >> 16) & 0xffff, (unsigned int)guid & 0xffff);
	put(tree, text, "%s/ports/1/gids/0", base);
	put(tree, "RoCE v2", "%s/ports/1/gid_attrs/types/0", base);
	snprintf(text, sizeof(text), IDENTITY_NETDEV, index);
	put(tree, text, "%s/ports/1/gid_attrs/ndevs/0", base);
	put(tree, "0", "%s/ports/1/hw_counters/out_of_buffer", base);
}

static void
put_uverbs(struct tree *tree, unsigned int index)
{
	char text[64];

	snprintf(text, sizeof(text), LINKS IDENTITY_PCI, index);
	put_link(tree, text, "class/infiniband_verbs/uverbs%u/device", index);
	snprintf(text, sizeof(text), IDENTITY_DEVICE, index);
	put(tree, text, "class/infiniband_verbs/uverbs%u/ibdev", index);
	snprintf(text, sizeof(text), "%u:%u", NODE_MAJOR, NODE_MINOR + index);
	put(tree, text, "class/infiniband_verbs/uverbs%u/dev", index);
	put(tree, "1", "class/infiniband_verbs/uverbs%u/abi_version", index);
}

int
sysfs_create(const char *folder, unsigned int ports, bool netdevs)
{
	struct tree tree = {.folder = folder};
	unsigned int i;

	put(&tree, "6", "class/infiniband_verbs/abi_version");
	put(&tree, "", DRIVER "/uevent");
	/* Backwards: libibverbs lists as the folder does, which in tmpfs is the last one first. */
	for (i = ports; i-- > 0;) {
		put_pci(&tree, i, netdevs);
		put_infiniband(&tree, i);
		put_uverbs(&tree, i);
	}
	return tree.error;
}
